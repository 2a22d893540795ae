// SPDX-License-Identifier: MIT
// The time limit of a job, which is the same in each home: worker.js and file.js run these tests in theirs. The
// clock of time limits and heartbeats stands still here, until a test lets one of them pass.
"use strict";
const assert = require("assert");
const { once } = require("events");
const test = require("node:test");
const { Queue, Worker, TimeoutError } = require("tickwheel");

const LIMIT = 300001, BEAT = 500009; // ms, which no other wait has
const SAID = "the time limit of 300.001 s is over";
const FAR = 3600000, LATER = { backoff: { first: FAR, factor: 1, max: FAR } };
const NOTHING = { done: 0, failed: 0, died: 0, back: 0, notYours: 0 };
const waits = new Set(), { setTimeout: beginReal, clearTimeout: endReal } = globalThis;

globalThis.setTimeout = (call, ms, ...args) => {
    if (ms !== LIMIT && ms !== BEAT) return beginReal(call, ms, ...args);
    const wait = { call, ms };
    waits.add(wait);
    return wait;
};
globalThis.clearTimeout = (wait) => waits.delete(wait) || endReal(wait);

function waiting(ms) {
    return [...waits].filter((wait) => wait.ms === ms);
}

/** Lets all waits of this length pass. */
function pass(ms) {
    for (const wait of waiting(ms)) {
        waits.delete(wait);
        wait.call();
    }
}

/** Returns a promise, and the function that fulfils it. */
function gate() {
    let open;
    const opened = new Promise((resolve) => {
        open = resolve;
    });
    return [opened, open];
}

/** A worker with the limit, its promise of the counts, and its events as they come. `others` are handlers of further
 * queues, which have no limit. */
function begin(home, queue, handler, { others = {}, ...options } = {}) {
    const told = [], worker = new Worker(home, { jobs: 1, lease: 3 * BEAT, ...options });
    for (const name of ["begin", "done", "failed", "dead", "back", "notYours"]) {
        worker.on(name, ({ id }) => told.push(`${name} ${id}`));
    }
    worker.on("trouble", () => {});
    worker.task(queue.key, handler, { timeout: LIMIT });
    for (const [key, other] of Object.entries(others)) worker.task(key, other);
    return [worker, worker.run({ signals: [] }), told];
}

/** Resolves when the condition holds. test_node.py has patience for so long. */
async function until(condition) {
    while (!condition()) await new Promise(setImmediate);
}

async function aborted(signal) {
    if (!signal.aborted) await once(signal, "abort");
    return signal.reason;
}

/** `fresh()` resolves to a new queue, and its home. There `hear(before)` returns a home for a worker whose commands
 * wait for before(words). */
function testLimits(fresh) {
    test("a time limit: the attempt has failed, and the place is taken until its handler ends", async () => {
        const { home, queue } = await fresh(), [finished, finish] = gate(), seen = [];
        await queue.put("a", "x", LATER);
        await queue.put("b", "x", { delay: FAR });
        const [worker, counts, told] = begin(home, queue, async (job) => {
            if (job.id === "b") return;
            pass(LIMIT);
            seen.push(await aborted(job.signal), job.notYours, job.givenUp);
            await finished;
            throw new Error("too late");
        });
        const [job, error, next] = await once(worker, "failed"), task = await queue.get("a");
        assert.deepEqual([task.state, task.error, task.next], ["waiting", `TimeoutError: ${SAID}`, next]);
        assert.deepEqual([job.signal.reason, worker.counts], [error, { ...NOTHING, failed: 1 }]);
        assert.equal(await queue.promote("b"), true);
        assert.equal((await queue.get("b")).state, "ready"); // Nobody has a place for it.
        finish();
        await once(worker, "done");
        await worker.stop();
        assert.deepEqual([seen, error instanceof TimeoutError, error.message], [[error, false, false], true, SAID]);
        assert.deepEqual(told, ["begin a", "failed a", "begin b", "done b"]);
        assert.deepEqual([await counts, (await queue.get("a")).attempt], [{ ...NOTHING, done: 1, failed: 1 }, 1]);
    });

    test("the last attempt dies by its time limit, and runReady() throws the error", async () => {
        const { home, queue } = await fresh();
        await queue.put("a", "x", { tries: 1 });
        const worker = new Worker(home).task(queue.key, (job) => {
            pass(LIMIT);
            return aborted(job.signal); // It would have done the job.
        }, { timeout: LIMIT });
        await assert.rejects(worker.runReady({ throwErrors: true }), { name: "TimeoutError", message: SAID });
        assert.deepEqual([worker.counts, (await queue.dead()).map((task) => task.error)],
            [{ ...NOTHING, failed: 1, died: 1 }, [`TimeoutError: ${SAID}`]]);
    });

    test("a handler that ends in time has no limit any more", async () => {
        const { home, queue } = await fresh();
        await queue.put("a", "x");
        await queue.put("b", "x");
        const [worker, counts, told] = begin(home, queue, (job) => {
            if (job.id === "b") assert.equal(waiting(LIMIT).length, 1); // that of "b"
        });
        await until(() => told.length === 4);
        await worker.stop();
        assert.deepEqual([await counts, waiting(LIMIT)], [{ ...NOTHING, done: 2 }, []]);
    });

    test("heartbeats end with the time limit", async () => {
        const { home, hear, queue } = await fresh(), [finished, finish] = gate(), beats = { a: 0, b: 0 };
        const heard = hear((words) => {
            if (words[0] === "TW.TOUCH") beats[words[2]]++;
        });
        const other = new Queue(home, `${queue.key}2`), others = { [other.key]: () => finished };
        await queue.put("a", "x", LATER);
        await other.put("b", "x");
        const [worker, counts, told] = begin(heard, queue, () => finished, { jobs: 2, others });
        await until(() => told.length === 2 && waiting(BEAT).length === 2);
        pass(BEAT);
        await until(() => beats.a === 1 && beats.b === 1 && waiting(BEAT).length === 2);
        pass(LIMIT);
        await once(worker, "failed");
        for (const count of [2, 3]) {
            pass(BEAT);
            await until(() => beats.b === count && waiting(BEAT).length > 0);
        }
        finish();
        await worker.stop();
        assert.deepEqual([beats, await counts], [{ a: 1, b: 3 }, { ...NOTHING, done: 1, failed: 1 }]);
        assert.deepEqual(told.slice(2), ["failed a", "done b"]);
    });

    test("a task that is not yours has no time limit", async () => {
        const { home, queue } = await fresh(), [finished, finish] = gate();
        await queue.put("a", "x");
        const [worker, counts, told] = begin(home, queue, async (job) => {
            await queue.cancel("a");
            pass(BEAT);
            await aborted(job.signal);
            pass(LIMIT);
            finish();
            await new Promise(setImmediate);
            assert.ok(job.notYours);
        });
        await finished;
        await worker.stop();
        assert.deepEqual([await counts, told], [{ ...NOTHING, notYours: 1 }, ["begin a", "notYours a"]]);
    });

    test("a handler beyond its time limit keeps the worker no longer than its grace", async () => {
        const { home, queue } = await fresh();
        await queue.put("a", "x", LATER);
        const [worker, counts, told] = begin(home, queue, () => new Promise(() => {}), { grace: 1 });
        await once(worker, "begin");
        pass(LIMIT);
        await once(worker, "failed");
        await worker.stop();
        assert.deepEqual([await counts, told], [{ ...NOTHING, failed: 1 }, ["begin a", "failed a"]]);
    });

    test("a time limit that cannot be told keeps the worker no longer than its grace", async () => {
        const { home, hear, queue } = await fresh(), [refused, refuse] = gate();
        const heard = hear((words) => {
            if (words[0] !== "TW.NACK") return;
            refuse();
            throw Object.assign(new Error("away"), { code: "SQLITE_BUSY" });
        });
        await queue.put("a", "x");
        const [worker, counts, told] = begin(heard, queue, (job) => aborted(job.signal), { grace: 1, timeout: 100 });
        await once(worker, "begin");
        pass(LIMIT);
        await refused;
        await worker.stop();
        assert.deepEqual([await counts, told], [{ ...NOTHING, notYours: 1 }, ["begin a", "notYours a"]]);
    });
}

module.exports = { LIMIT, SAID, LATER, pass, begin, until, aborted, testLimits };
