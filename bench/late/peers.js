// SPDX-License-Identifier: MIT
// The sides of the lateness table that have a worker in Node, with a server or a file. `measure` leads it, and a
// line on the standard input begins each step. At the end it prints for each probe the microseconds from its
// due time to the beginning of its handler.
//
//     node peers.js SIDE PENDING PROBES PLACE
//
// SIDE is module, node_file, bullmq_hz10, bullmq_hz100, pgboss, graphile, graphile_default or polled.
// PLACE is the port of Redis, the path of the file, or the folder of PostgreSQL's socket. NODE_PATH has the packages
// of the peers. TICKWHEEL_COMMAND is the command, which makes the file.
const { execFileSync } = require('child_process');
const path = require('path');
const readline = require('readline');

const BATCH = 1000;         // tasks that one call files
const CALLS = 4;            // such calls at once
const EVERY_MS = 20, AHEAD_MS = 2000, HOUR_MS = 3600000, PENDING_MS = 15 * 24 * HOUR_MS;
const PATIENCE_MS = 120000; // after the last probe
const POLL_MS = 100;        // of sides whose polling interval is free
const AT_ONCE = 10;         // jobs of a worker
const PAYLOAD = 'p'.repeat(80);

const [side, ...rest] = process.argv.slice(2);
const [pending, probes] = rest.map(Number);
const place = rest[2];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const draw = (below) => Math.floor(Math.random() * below);

// ---- the time of day, in microseconds -----------------------------------------------------------------------

// Date.now() has milliseconds only. This is its difference to the clock of performance.now(), seen at the
// moment at which Date.now() turns. A look that comes too late sees less, so the most of some looks counts.
function differenceOfClocks() {
    let most = -Infinity;
    for (let look = 0; look < 16; look++) {
        const before = Date.now();
        let now = Date.now();
        while (now === before)
            now = Date.now();
        most = Math.max(most, now - performance.now());
    }
    return most;
}

let difference = 0;
const late = [];

function called(due) {
    late.push(Math.round((performance.now() + difference - Number(due)) * 1000));
}

// ---- the sides ----------------------------------------------------------------------------------------------
// Each has open(), file(dues), work() and close(). Tasks carry their due time in their payload.

// Our worker in a home. Probes have names of their own: the pending tasks stay. `file` gets the name and the number of
// the first task.
function ours(url, file) {
    const { Worker, connect } = require(path.join(__dirname, '..', '..', 'clients', 'node'));
    let home, worker, runs, number = 0;
    return {
        async open() {
            home = await connect(url);
        },
        async file(dues) {
            const first = number;
            number += dues.length;
            await file(home, dues, worker ? 'probe' : 'task', first);
        },
        async work() {
            worker = new Worker(home, { jobs: AT_ONCE, lease: 30000 });
            worker.task('late', async (job) => called(job.text.split(' ')[0]));
            runs = worker.run();
        },
        async close() {
            worker?.stop();
            await runs;
            await home.close();
        },
    };
}

function ourModule() {
    const { Queue } = require(path.join(__dirname, '..', '..', 'clients', 'node'));
    return ours(`redis://127.0.0.1:${place}`, (home, dues, name, first) => {
        const queue = new Queue(home, 'late');
        return Promise.all(dues.map((due, i) => queue.put(`${name}:${first + i}`, `${due} ${PAYLOAD}`, { at: due })));
    });
}

// The command makes the file, and files tasks: a call of put() would be a transaction for each of them.
function ourFile() {
    const put = (...lines) => execFileSync(process.env.TICKWHEEL_COMMAND,
        ['put', '--store', place, '--queue', 'late', '--quiet'], { input: lines.join('\n'), stdio: 'pipe' });
    put();
    return ours(`sqlite:///${place}`, (home, dues, name, first) => put(...dues.map((due, i) =>
        `@${new Date(due).toISOString()} ${name}:${first + i} ${due} ${PAYLOAD}`)));
}

function bullmq() {
    const { Queue, Worker } = require('bullmq');
    const connection = { host: '127.0.0.1', port: Number(place), maxRetriesPerRequest: null };
    let queue, worker;
    return {
        async open() {
            queue = new Queue('late', { connection });
            await queue.waitUntilReady();
        },
        async file(dues) {
            await queue.addBulk(dues.map((due) => ({
                name: 'job',
                data: { due, p: PAYLOAD },
                opts: { delay: due - Date.now(), removeOnComplete: true },
            })));
        },
        async work() {
            const options = { connection, concurrency: AT_ONCE };
            worker = new Worker('late', async (job) => called(job.data.due), options);
            worker.on('error', (error) => console.error(error.message));
            await worker.waitUntilReady();
        },
        async close() {
            await worker?.close();
            await queue.close();
        },
    };
}

function pgboss() {
    const PgBoss = require('pg-boss');
    const boss = new PgBoss({ host: place, user: 'postgres', database: 'postgres' });
    boss.on('error', (error) => console.error(error.message));
    return {
        async open() {
            await boss.start();
            await boss.createQueue('late');
        },
        async file(dues) {
            await boss.insert(dues.map((due) => ({
                name: 'late', data: { due, p: PAYLOAD }, startAfter: new Date(due),
            })));
        },
        async work() { // half a second is the shortest interval that it accepts
            await boss.work('late', { pollingIntervalSeconds: 0.5, batchSize: 100 }, async (jobs) => {
                for (const job of jobs)
                    called(job.data.due);
            });
        },
        async close() {
            await boss.stop({ graceful: false });
        },
    };
}

// Jobs for later are found by polling. A NOTIFY tells its workers of each job that is filed, but then they find
// only jobs that are due. `settings` are its own: without them it has one worker, which polls each two seconds.
function graphile(settings) {
    const { run, runMigrations, Logger } = require('graphile-worker');
    const { Pool } = require('pg');
    const pgPool = new Pool({ host: place, user: 'postgres', database: 'postgres', max: AT_ONCE + 2 });
    const logger = new Logger(() => () => {});
    let runner;
    return {
        async open() {
            await runMigrations({ pgPool, logger });
        },
        async file(dues) {
            await pgPool.query(
                `SELECT count(graphile_worker.add_job('late', json_build_object('due', due, 'p', $2::text),
                    run_at => to_timestamp(due / 1000.0))) FROM unnest($1::bigint[]) AS due`, [dues, PAYLOAD]);
        },
        async work() {
            runner = await run({
                pgPool, logger, noHandleSignals: true, ...settings,
                taskList: { late: async (payload) => called(payload.due) },
            });
        },
        async close() {
            await runner?.stop();
            await pgPool.end();
        },
    };
}

// A table with an index on the due time, asked each 100 ms, and again at once while there are more.
function polled() {
    const { Pool } = require('pg');
    const pool = new Pool({ host: place, user: 'postgres', database: 'postgres' });
    let ends = false, runs;
    async function poll() {
        while (!ends) {
            const { rows } = await pool.query({
                name: 'take',
                text: `DELETE FROM late WHERE id IN (SELECT id FROM late WHERE due <= $1 ORDER BY due
                    LIMIT 100 FOR UPDATE SKIP LOCKED) RETURNING due`,
                values: [Date.now()],
            });
            for (const row of rows)
                called(row.due);
            if (rows.length < 100)
                await sleep(POLL_MS);
        }
    }
    return {
        async open() {
            await pool.query('CREATE TABLE IF NOT EXISTS late (id bigserial PRIMARY KEY, due bigint NOT NULL,'
                + ' p text NOT NULL)');
            await pool.query('CREATE INDEX IF NOT EXISTS late_due ON late (due)');
        },
        async file(dues) {
            await pool.query('INSERT INTO late (due, p) SELECT due, $2 FROM unnest($1::bigint[]) AS due',
                [dues, PAYLOAD]);
        },
        async work() {
            runs = poll();
            runs.catch((error) => { console.error(error.message); process.exit(1); });
        },
        async close() {
            ends = true;
            await runs;
            await pool.end();
        },
    };
}

const SIDES = {
    module: ourModule, node_file: ourFile, bullmq_hz10: bullmq, bullmq_hz100: bullmq, pgboss, polled,
    graphile: () => graphile({ concurrency: AT_ONCE, pollInterval: POLL_MS }),
    graphile_default: () => graphile({}),
};

// ---- the steps ----------------------------------------------------------------------------------------------

const words = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Says that the last step is done, and waits for the word that begins the next. Returns that word.
async function step(done, ...next) {
    console.log(done);
    const { value } = await words.next();
    if (!next.includes(value))
        throw new Error('the measuring program has gone');
    return value;
}

// With some calls at once neither the server nor this process waits for the other.
async function fileAll(peer, dues) {
    let first = 0;
    async function fileSome() {
        while (first < dues.length) {
            const batch = dues.slice(first, first + BATCH);
            first += BATCH;
            await peer.file(batch);
        }
    }
    await Promise.all(Array.from({ length: CALLS }, fileSome));
}

async function fill(peer) {
    const from = Date.now() + HOUR_MS;
    await fileAll(peer, Array.from({ length: pending }, () => from + draw(PENDING_MS)));
}

async function work(peer) {
    await peer.work();
    await step('idle', 'probe');
    difference = differenceOfClocks();
    const start = Date.now() + AHEAD_MS;
    const dues = Array.from({ length: probes }, (_, i) => start + i * EVERY_MS + draw(EVERY_MS));
    await fileAll(peer, dues);
    if (Date.now() > start)
        throw new Error('filing took longer than thought: probes were due before they were there');
    for (const end = start + probes * EVERY_MS + PATIENCE_MS; late.length < probes; await sleep(100))
        if (Date.now() > end)
            throw new Error(`${late.length} of ${probes} probes were called within two minutes`);
    for (const us of late)
        console.log(`late ${us}`);
    await step('done', 'end');
}

async function main() {
    const peer = SIDES[side]();
    await peer.open();
    let word = await step('empty', 'fill', 'work');
    if (word === 'fill') {
        await fill(peer);
        word = await step('filled', 'work', 'end');
    }
    if (word === 'work')
        await work(peer);
    await peer.close();
    process.exit(0);
}

main().catch((error) => {
    console.error(`peers.js: ${side}: ${error.message}`);
    process.exit(1);
});
