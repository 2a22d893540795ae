// SPDX-License-Identifier: MIT
// The whole life of jobs in BullMQ: delayed, due within two seconds, taken and completed by one worker.
//
//     node bullmq.js PORT JOBS BYTES        prints the number of jobs that were completed
const { Queue, Worker } = require('bullmq');

const BATCH = 1000;         // jobs that one addBulk() files
const CONCURRENCY = 50;     // jobs that the worker has at a time
const SPREAD_MS = 2000;

const [port, jobs, bytes] = process.argv.slice(2).map(Number);
const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };

async function fileJobs(queue, start) {
    const payload = 'p'.repeat(bytes);
    for (let first = 0; first < jobs; first += BATCH) {
        const some = [];
        for (let i = first; i < Math.min(first + BATCH, jobs); i++) {
            const due = start + Math.floor(Math.random() * SPREAD_MS);
            some.push({
                name: 'job',
                data: { p: payload },
                opts: { jobId: `job-${i}`, delay: due - Date.now(), removeOnComplete: true, attempts: 5 },
            });
        }
        await queue.addBulk(some);
    }
}

async function main() {
    const queue = new Queue('tasks', { connection });
    await queue.waitUntilReady();
    await fileJobs(queue, Date.now() + 1000 + jobs / 4);
    let completed = 0;
    await new Promise((resolve) => {
        const worker = new Worker('tasks', async () => {}, { connection, concurrency: CONCURRENCY });
        worker.on('completed', () => {
            if (++completed === jobs)
                worker.close().then(resolve);
        });
    });
    await queue.close();
    console.log(completed);
}

main();
