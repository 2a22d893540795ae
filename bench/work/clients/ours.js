// SPDX-License-Identifier: MIT
// Our client for Node: a hundred puts at a time, and a worker with a hundred handlers at once. tally.py has the
// arguments.
const path = require('path');
const { createClient } = require('redis');
const { Queue, Worker } = require(path.join(__dirname, '..', '..', '..', 'clients', 'node'));
const { IN_FLIGHT, QUEUE, asked, tell, called } = require('./tally');

const client = createClient({ socket: { host: '127.0.0.1', port: asked.port } });

async function put() {
    await client.connect();
    const queue = new Queue(client, QUEUE);
    let next = 0;
    async function putSome() {
        while (next < asked.jobs)
            await queue.put(`job-${next++}`, asked.payload);
    }
    tell('first');
    await Promise.all(Array.from({ length: IN_FLIGHT }, putSome));
    tell('last');
}

async function work() {
    const worker = new Worker(client, { jobs: IN_FLIGHT });
    worker.task(QUEUE, async () => called());
    await worker.run();
}

asked.mode === 'put' ? put() : work();
