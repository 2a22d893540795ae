// SPDX-License-Identifier: MIT
// BullMQ: addBulk() of a hundred jobs, and a worker with a hundred at once. A job is removed when it is done,
// as in the other queues. tally.py has the arguments.
const { Queue, Worker } = require('bullmq');
const { IN_FLIGHT, QUEUE, asked, tell, called } = require('./tally');

const connection = { host: '127.0.0.1', port: asked.port, maxRetriesPerRequest: null };

async function put() {
    const queue = new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true } });
    await queue.waitUntilReady();
    tell('first');
    for (let first = 0; first < asked.jobs; first += IN_FLIGHT) {
        const length = Math.min(IN_FLIGHT, asked.jobs - first);
        await queue.addBulk(Array.from({ length }, () => ({ name: 'job', data: { p: asked.payload } })));
    }
    tell('last');
}

function work() {
    const worker = new Worker(QUEUE, async () => called(), { connection, concurrency: IN_FLIGHT });
    worker.on('error', (error) => console.error(error.message));
}

asked.mode === 'put' ? put() : work();
