// SPDX-License-Identifier: MIT
// Worker of clients/node against a server: the parts of its interface that other languages do not have. The
// behaviour that all workers share is in test_workers.py. test_node.py runs it.
"use strict";
const assert = require("assert");
const { once } = require("events");
const test = require("node:test");
const { createClient } = require("redis");
const {
    Queue, Values, Worker, Retry, Back, Dead, EffectError, NotYours, GivenUp, WorkerError,
} = require("tickwheel");
const limits = require("./limits");

const FAR = 3600000, NO_SIGNALS = { signals: [] };
const NOTHING = { done: 0, failed: 0, died: 0, back: 0, notYours: 0 };
const client = createClient({ url: process.env.TICKWHEEL_URL });
let count = 0;

function fresh() {
    return new Queue(client, `{nodework${count++}}:work`);
}

/** A worker with one queue and its promise of the counts. */
function begin(queue, handler, options = {}) {
    const worker = new Worker(client, { lease: 2000, ...options }).task(queue.key, handler);
    return [worker, worker.run(NO_SIGNALS)];
}

/** Waits for so many events, and returns the arguments of each. */
async function events(worker, name, many = 1) {
    const found = [];
    await new Promise((resolve) => {
        worker.on(name, (...args) => {
            if (found.push(args) === many) resolve();
        });
    });
    return found;
}

const aborted = (signal) => (signal.aborted ? Promise.resolve() : once(signal, "abort"));

test.before(async () => {
    await client.connect();
    await client.flushAll();
});
test.after(() => client.quit());

test("the handler gets the whole job, and events tell of it", async () => {
    const queue = fresh(), seen = [], due = Date.now() - 60000;
    await queue.put("a", new Values("one", "two"), { at: due });
    const [worker, counts] = begin(queue, (job) => seen.push(job));
    const told = [];
    for (const name of ["begin", "done"]) worker.on(name, (job) => told.push([name, job.id]));
    await events(worker, "done");
    await worker.stop();
    const [job] = seen;
    assert.deepEqual([job.queue, job.id, job.text, job.payload], [queue.key, "a", "one", ["one", "two"]]);
    assert.deepEqual([job.due.getTime(), job.attempt, job.missedPeriods, job.notYours, job.givenUp],
        [due, 1, 0, false, false]);
    assert.match(job.token, /^[0-9a-f]{16}$/);
    assert.deepEqual(told, [["begin", "a"], ["done", "a"]]);
    assert.deepEqual(await counts, { ...NOTHING, done: 1 });
    assert.deepEqual(worker.counts, { ...NOTHING, done: 1 });
});

test("a payload as JSON", async () => {
    const queue = fresh(), seen = [];
    await queue.put("a", { order: 42, to: ["ann"] });
    await queue.put("b", "no JSON", { tries: 1 });
    const [worker] = begin(queue, (job) => {
        assert.equal(job.json, job.json); // It is read once.
        seen.push(job.json);
    }, { buffers: true });
    const [[job, error]] = await events(worker, "dead");
    await worker.stop();
    assert.deepEqual([seen, job.id, error.name], [[{ order: 42, to: ["ann"] }], "b", "SyntaxError"]);
    assert.match(error.message, /^payload begins with 'no JSON': expected JSON \(/);
});

test("payloads as bytes", async () => {
    const queue = fresh(), bytes = Buffer.from([0, 255]);
    await queue.put(Buffer.from([200]), bytes);
    let payload;
    const [worker] = begin(queue, (job) => {
        ({ payload } = job);
    }, { buffers: true });
    await events(worker, "done"); // The id is no text either, and is acknowledged.
    assert.deepEqual(await worker.stop(), { ...NOTHING, done: 1 });
    assert.deepEqual(payload, [bytes]);
});

test("a task that comes too early is given back", async () => {
    const queue = fresh();
    for (const id of ["in", "at"]) await queue.put(id, "x", { tries: 1 });
    const [worker] = begin(queue, (job) => {
        throw new Back(job.id === "in" ? FAR : new Date(4102444800000));
    });
    await events(worker, "back", 2);
    assert.deepEqual(await worker.stop(), { ...NOTHING, back: 2 });
    for (const id of ["in", "at"]) {
        const { state, attempt, error } = await queue.get(id);
        assert.deepEqual([state, attempt, error], ["waiting", 0, ""]);
    }
    assert.equal((await queue.get("at")).next.getTime(), 4102444800000);
});

test("errors of a handler, and the text that stays with the task", async () => {
    class PaymentFailed extends Error {}
    const queue = fresh();
    const throws = {
        plain: new TypeError("no function"),
        own: new PaymentFailed("card refused"),
        text: "only text",
        retry: new Retry(FAR, "the server is busy"),
        date: new Retry(new Date(4102444800000)),
        cause: new Retry(FAR, "", { cause: new RangeError("too far") }),
        dead: new Dead("no such address"),
        why: new Dead(undefined, { cause: new PaymentFailed("card stolen") }),
        mute: Object.create(null),
        symbol: Object.assign(new Error("x"), { name: Symbol("x") }),
    };
    for (const id of Object.keys(throws)) {
        await queue.put(id, "x", { tries: 2, backoff: { first: FAR, factor: 1, max: FAR } });
    }
    const [worker] = begin(queue, (job) => {
        throw throws[job.id];
    });
    const [failed, dead] = await Promise.all([events(worker, "failed", 8), events(worker, "dead", 2)]);
    assert.deepEqual(await worker.stop(), { ...NOTHING, failed: 10, died: 2 });
    for (const [job, error, next] of failed) {
        assert.equal(error, throws[job.id]);
        assert.equal((await queue.get(job.id)).next.getTime(), next.getTime());
    }
    assert.deepEqual(dead.map(([job]) => job.id).sort(), ["dead", "why"]);
    const found = {};
    for (const id of Object.keys(throws)) found[id] = (await queue.get(id)).error;
    assert.deepEqual(found, { plain: "TypeError: no function", own: "PaymentFailed: card refused",
        text: "only text", retry: "the server is busy", date: "", cause: "RangeError: too far",
        dead: "no such address", why: "PaymentFailed: card stolen",
        mute: "an error without a text", symbol: "an error without a text" });
    assert.equal((await queue.get("date")).next.getTime(), 4102444800000);
});

test("a queue with places of its own", async () => {
    const many = fresh(), one = fresh(), at = { [many.key]: 0, [one.key]: 0 }, most = { ...at };
    for (let i = 0; i < 5; i++) {
        await many.put(`${i}`, "x");
        await one.put(`${i}`, "x");
    }
    let open, begun = 0;
    const gate = new Promise((resolve) => {
        open = resolve;
    });
    async function handler({ queue }) {
        at[queue]++;
        most[queue] = Math.max(most[queue], at[queue]);
        if (++begun === 4) open(); // three of `many`, one of `one`
        await gate;
        at[queue]--;
    }
    const worker = new Worker(client, { jobs: 3 }).task(many.key, handler).task(one.key, handler, { jobs: 1 });
    worker.run(NO_SIGNALS);
    await events(worker, "done", 10);
    assert.deepEqual(await worker.stop(), { ...NOTHING, done: 10 });
    assert.deepEqual(most, { [many.key]: 3, [one.key]: 1 });
});

test("the signal says why", async () => {
    const queue = fresh(), reasons = {};
    for (const id of ["cancelled", "stopped"]) await queue.put(id, "x");
    const [worker, counts] = begin(queue, async (job) => {
        await aborted(job.signal);
        reasons[job.id] = [job.signal.reason.constructor, job.notYours, job.givenUp];
        throw job.signal.reason;
    });
    await events(worker, "begin", 2);
    const [[told]] = await Promise.all([events(worker, "notYours"), queue.cancel("cancelled")]);
    assert.equal(told[0].id, "cancelled");
    await worker.giveUp();
    assert.deepEqual(reasons, { cancelled: [NotYours, true, false], stopped: [GivenUp, false, true] });
    assert.deepEqual(await counts, { ...NOTHING, back: 1, notYours: 1 });
    const { state, attempt } = await queue.get("stopped");
    assert.deepEqual([state, attempt], ["ready", 0]);
});

test("after giveUp() a handler that ends is acknowledged, and one that does not end is left", async () => {
    const queue = fresh();
    for (const id of ["ends", "stays"]) await queue.put(id, "x");
    const [worker, counts] = begin(queue, async (job) => {
        await aborted(job.signal);
        if (job.id === "stays") await new Promise(() => {});
    });
    await events(worker, "begin", 2);
    await worker.giveUp();
    assert.deepEqual(await counts, { ...NOTHING, done: 1, back: 1 });
    assert.equal((await queue.get("stays")).state, "ready");
});

const INCR = "return redis.call('INCR', KEYS[1])";

test("a script with the acknowledgement has its own keys, arguments and reply", async () => {
    const queue = fresh(), counter = `${queue.key}:n`, seen = [], warnings = [];
    const bad = [[5], ["#!lua\nreturn 1"], ["return 1", "k"], ["return 1", [5]], ["return 1", [], [true]]];
    const warn = (warning) => warnings.push(warning.message);
    process.on("warning", warn);
    await queue.put("a", "x");
    const [worker, counts] = begin(queue, async (job) => {
        for (const args of bad) await assert.rejects(job.ackThen(...args), /expected/);
        assert.throws(() => job.ackOn({}), /^TypeError: the home of 'a' is a server: expected job.ackThen\(script/);
        await assert.rejects(job.ackThen("this is no Lua"), /^TickwheelError: .*user_script/);
        seen.push(await job.ackThen("return {redis.call('INCRBY', KEYS[1], ARGV[1]), ARGV[2], false}",
            [Buffer.from(counter)], [5, "\u00e4"]));
        await job.ackThen(INCR, [counter]).catch((error) => seen.push(error.message));
        throw new Retry(5, "after all");
    });
    await events(worker, "done");
    await worker.stop();
    await new Promise(setImmediate);
    process.off("warning", warn);
    const before = `'a' in '${queue.key}' was acknowledged before: expected one ackThen()`;
    assert.deepEqual([seen, await counts], [[[5, "\u00e4", null], before], { ...NOTHING, done: 1 }]);
    assert.equal(await client.get(counter), "5");
    assert.match(warnings.join(), /'a' in .* is done, and its handler failed after the acknowledgement: after/);
});

test("a script of a task that is not yours", async () => {
    const queue = fresh();
    await queue.put("a", "x");
    const seen = [];
    const [worker, counts] = begin(queue, async (job) => {
        await queue.cancel("a");
        for (let i = 0; i < 2; i++) await job.ackThen(INCR, ["n"]).catch((error) => seen.push(error.constructor));
    });
    const [[told]] = await events(worker, "notYours");
    assert.equal(told.notYours, true);
    await worker.stop();
    assert.deepEqual([seen, await counts, await client.get("n")],
        [[NotYours, NotYours], { ...NOTHING, notYours: 1 }, null]);
});

test("a script that fails ends the job and its heartbeats all the same", async () => {
    const queue = fresh(), lease = 3000;
    let told, finish, bytes, lost;
    const finished = new Promise((resolve) => {
        finish = resolve;
    });
    await queue.put("a", "x");
    await queue.put("b", "x", { delay: lease / 3 + 100 }); // A heartbeat of the first job would come before.
    const [worker, counts] = begin(queue, async (job) => {
        if (job.id === "b") {
            bytes = await job.ackThen("return 'x'");
            finish();
            return;
        }
        await job.ackThen("redis.call('INCR', KEYS[1]) return redis.error_reply('MINE no')", [`${queue.key}:n`])
            .catch((error) => {
                told = error;
            });
        await finished;
        lost = job.notYours;
    }, { lease, buffers: true });
    await events(worker, "done", 2);
    await worker.stop();
    assert.ok(told instanceof EffectError && told.message === "MINE no", String(told));
    assert.deepEqual([bytes, lost, await counts, await client.get(`${queue.key}:n`)],
        [Buffer.from("x"), false, { ...NOTHING, done: 2 }, "1"]);
});

test("a function makes the client, and is asked again after a failure", async () => {
    const queue = fresh();
    let asked = 0;
    const worker = new Worker(async () => {
        if (++asked < 3) throw new Error("no primary yet");
        return createClient({ url: process.env.TICKWHEEL_URL });
    });
    const troubles = [];
    worker.on("trouble", (error, wait) => troubles.push([error.message, wait >= 50 && wait <= 200]));
    worker.task(queue.key, () => {}).run(NO_SIGNALS);
    await queue.put("a", "x");
    await events(worker, "done");
    await worker.stop();
    assert.deepEqual(troubles, [["no primary yet", true], ["no primary yet", true]]);
});

test("without a listener trouble is a warning", async () => {
    const worker = new Worker(createClient({ url: "redis://127.0.0.1:1" })).task("s", () => {});
    const warned = once(process, "warning"), ended = worker.run(NO_SIGNALS);
    const [warning] = await warned;
    assert.equal(warning.name, "TickwheelWarning");
    assert.match(warning.message, /ECONNREFUSED.*; the worker tries again in \d+ ms/);
    await worker.stop();
    assert.deepEqual(await ended, NOTHING);
});

test("a refusal ends the worker when the handlers that run have ended", async () => {
    const queue = fresh(), other = fresh();
    await queue.put("a", "x");
    let finish, told;
    const finished = new Promise((resolve) => {
        finish = resolve;
    });
    const worker = new Worker(client, { block: 50 }).task(queue.key, async (job) => {
        await finished;
        told = job.signal.aborted;
    }).task(other.key, () => {}, { jobs: 1 });
    const ended = assert.rejects(worker.run(NO_SIGNALS), (error) => {
        assert.ok(error instanceof WorkerError && /^WRONGTYPE/.test(error.cause.message));
        assert.ok(error.message.endsWith(`expected queues, or keys that do not exist yet: '${other.key}'`));
        return true;
    });
    await events(worker, "begin");
    const before = await client.sendCommand(["INFO", "errorstats"]);
    await client.set(other.key, "a string");
    while (await client.sendCommand(["INFO", "errorstats"]) === before) await new Promise(setImmediate);
    finish();
    await ended;
    assert.deepEqual([told, worker.counts, await queue.count()], [false, { ...NOTHING, done: 1 }, 0]);
});

test("a worker runs once", async () => {
    const queue = fresh();
    await assert.rejects(new Worker(client).run(), /the worker has no queue: call task\(\) first/);
    const worker = new Worker(client).task(queue.key, () => {});
    assert.deepEqual(await worker.stop(), NOTHING); // before run(): it ends as soon as it begins.
    assert.deepEqual(await worker.run(NO_SIGNALS), NOTHING);
    await assert.rejects(worker.run(), /the worker runs already, or has run/);
    assert.throws(() => worker.task("other", () => {}), /call task\('other'\) before run/);
});

// The time limit of a job

/** A client whose copies, the connections of a worker, wait for before(words) with each command. */
function hear(before) {
    const source = createClient({ url: process.env.TICKWHEEL_URL }), { duplicate } = source;
    source.duplicate = (...overrides) => {
        const copy = duplicate.apply(source, overrides), { sendCommand } = copy;
        copy.sendCommand = async (words, ...rest) => {
            await before(words);
            return sendCommand.call(copy, words, ...rest);
        };
        return copy;
    };
    return source;
}

limits.testLimits(async () => ({ home: client, queue: fresh(), hear }));

test("a script that acknowledges its job ends the time limit, which rests meanwhile", async () => {
    const queue = fresh(), counter = `${queue.key}:n`, stopped = [];
    for (const id of ["before", "meanwhile"]) await queue.put(id, "x");
    const home = hear((words) => {
        if (words[0] === "EVAL" && words.some((word) => String(word) === "meanwhile")) limits.pass(limits.LIMIT);
    });
    const [worker, counts, told] = limits.begin(home, queue, async (job) => {
        await job.ackThen(INCR, [counter]);
        limits.pass(limits.LIMIT);
        await client.ping(); // The worker has had the time to see it.
        stopped.push(job.signal.aborted);
    });
    await events(worker, "done", 2);
    await worker.stop();
    assert.deepEqual([await counts, await client.get(counter), stopped],
        [{ ...NOTHING, done: 2 }, "2", [false, false]]);
    assert.deepEqual(told.sort(), ["begin before", "begin meanwhile", "done before", "done meanwhile"]);
});

test("a script that is not done lets the time limit go on, and behind it there is none", async () => {
    const queue = fresh(), said = [];
    await queue.put("a", "x", limits.LATER);
    const home = hear((words) => words[0] === "EVAL" && limits.pass(limits.LIMIT));
    const [worker, counts] = limits.begin(home, queue, async (job) => {
        await assert.rejects(job.ackThen("this is no Lua"), /user_script/);
        said.push((await limits.aborted(job.signal)).message);
        await job.ackThen(INCR, [`${queue.key}:n`]).catch((error) => said.push(error.constructor));
    });
    await events(worker, "failed");
    await worker.stop();
    assert.deepEqual([said, await counts], [[limits.SAID, NotYours], { ...NOTHING, failed: 1 }]);
    assert.equal(await client.exists(`${queue.key}:n`), 0);
});

// Ready tasks alone, for tests

const LATER = { delay: FAR, backoff: { first: FAR, factor: 1, max: FAR } };

test("ready tasks are done in their order, and promote skips a delay and each backoff", async () => {
    const queue = fresh(), seen = [], events = [];
    const worker = new Worker(client).task(queue.key, async (job) => {
        seen.push([job.id, job.attempt]);
        if (job.id === "a") await queue.put("b", "x");
        if (job.id === "z" && job.attempt === 1) throw new Error("away");
    });
    for (const name of ["done", "failed"]) worker.on(name, (job) => events.push([name, job.id]));
    await queue.put("a", "x");
    await queue.put("z", "x", LATER);
    assert.deepEqual(await worker.runReady(), { ...NOTHING, done: 2 });
    assert.deepEqual(await worker.runReady(), NOTHING);
    for (const counts of [{ failed: 1 }, { done: 1 }]) {
        assert.equal(await queue.promote("z"), true);
        assert.deepEqual(await worker.runReady(), { ...NOTHING, ...counts });
    }
    assert.deepEqual(seen, [["a", 1], ["b", 1], ["z", 1], ["z", 2]]);
    assert.deepEqual(events, [["done", "a"], ["done", "b"], ["failed", "z"], ["done", "z"]]);
    assert.deepEqual([worker.counts, await queue.count()], [{ ...NOTHING, done: 3, failed: 1 }, 0]);
});

test("runReady() throws the errors of handlers if asked, but none that is for the worker", async () => {
    const queue = fresh(), gone = new Error("gone");
    const throws = { back: new Back(FAR), retry: new Retry(FAR, "busy"), dead: new Dead("no use"),
        last: new TypeError("away"), next: gone };
    const worker = new Worker(client).task(queue.key, (job) => {
        throw throws[job.id];
    });
    for (const id of Object.keys(throws)) {
        await queue.put(id, "x", { ...LATER, delay: 0, tries: id === "last" ? 1 : 2 });
    }
    await assert.rejects(worker.runReady({ throwErrors: true }), throws.last);
    assert.deepEqual(worker.counts, { ...NOTHING, failed: 3, died: 2, back: 1 });
    assert.deepEqual(await worker.runReady(), { ...NOTHING, failed: 1 });
    assert.deepEqual((await queue.dead()).map(({ id, error }) => [id, error]),
        [["dead", "no use"], ["last", "TypeError: away"]]);
    assert.equal(await queue.replay("last"), true);
    assert.deepEqual(await worker.runReady(), { ...NOTHING, failed: 1, died: 1 });
});

test("periods of a series, missed ones and those that are too late", async () => {
    const queue = fresh(), seen = [], begin = 4e12;
    const worker = new Worker(client).task(queue.key, ({ due, missedPeriods }) => {
        seen.push([due.getTime(), missedPeriods]);
    });
    await queue.put("a", "x", { at: begin, every: FAR, times: 2 });
    while (await queue.promoteAll()) assert.deepEqual(await worker.runReady(), { ...NOTHING, done: 1 });
    assert.deepEqual([seen, await queue.count()], [[[begin, 0], [begin + FAR, 0]], 0]);
    await queue.put("b", "x", { at: Date.now() - 2.5 * FAR, every: FAR });
    await queue.put("c", "x", { at: Date.now() - FAR, maxLate: 60000 });
    assert.deepEqual(await worker.runReady(), { ...NOTHING, done: 1 });
    assert.deepEqual([seen[2][1], await queue.get("c")], [2, null]);
});

test("a handler that makes its task ready each time ends at the limit", async () => {
    const queue = fresh();
    let calls = 0;
    const worker = new Worker(client).task(queue.key, (job) => {
        calls++;
        if (job.id === "a") throw new Back(0);
    });
    await queue.put("a", "x");
    await assert.rejects(worker.runReady({ limit: 5 }), /5 attempts were made, and 'a' is ready: raise limit/);
    assert.deepEqual([calls, worker.counts], [5, { ...NOTHING, back: 6 }]);
    const { state, attempt } = await queue.get("a");
    assert.deepEqual([state, attempt], ["ready", 0]);
    await queue.cancel("a");
    for (let i = 0; i < 5; i++) await queue.put(`${i}`, "x");
    assert.deepEqual(await worker.runReady({ limit: 5 }), { ...NOTHING, done: 5 });
    await assert.rejects(worker.runReady({ limit: 0 }), /limit is 0: expected an integer from 1 to 2147483647/);
    await assert.rejects(worker.runReady({ throwErrors: 1 }), /throwErrors is 1: expected true or false/);
    await assert.rejects(worker.runReady({ raiseErrors: true }), /there is no option 'raiseErrors'/);
    await assert.rejects(new Worker(client).runReady(), /the worker has no queue/);
});

test("stop() ends one runReady(), heartbeats go on in it, and run() is possible afterwards", async () => {
    const queue = fresh(), seen = [], options = { lease: 300, grace: 0 };
    const heard = () => process.listenerCount("SIGTERM"), before = heard();
    const worker = new Worker(client, options).task(queue.key, async (job) => {
        seen.push(job.id, heard());
        if (job.id === "stops") worker.stop();
        if (job.id !== "cancelled") return;
        await queue.cancel(job.id);
        await aborted(job.signal);
        throw job.signal.reason;
    }).task(`${queue.key}2`, () => seen.push("other"), { jobs: 1 });
    for (const id of ["stops", "cancelled"]) await queue.put(id, "x");
    await new Queue(client, `${queue.key}2`).put("c", "x");
    const first = worker.runReady();
    await assert.rejects(worker.runReady(), /the worker runs already/);
    assert.deepEqual(await first, { ...NOTHING, done: 2 });
    assert.deepEqual(await worker.runReady({ throwErrors: true }), { ...NOTHING, notYours: 1 });
    const ended = worker.run(NO_SIGNALS);
    await queue.put("last", "x");
    await events(worker, "done");
    assert.deepEqual(await worker.stop(), await ended);
    assert.deepEqual(seen, ["other", "stops", before, "cancelled", before, "last", before]);
    await assert.rejects(worker.runReady(), /the worker runs already, or has run/);
});

test("runReady() repeats no call", async () => {
    const queue = fresh(), away = createClient({ url: "redis://127.0.0.1:1" });
    await assert.rejects(new Worker(away).task(queue.key, () => {}).runReady(),
        (error) => error instanceof WorkerError && /ECONNREFUSED/.test(error.message) && !!error.cause);
    const worker = new Worker(client).task(queue.key, async () => {
        await client.set(queue.key, "a string");
        throw new Error("of the handler");
    });
    await queue.put("a", "x");
    await assert.rejects(worker.runReady({ throwErrors: true }), /^WorkerError: WRONGTYPE/);
    await assert.rejects(worker.runReady(), /^WorkerError: WRONGTYPE/);
    await client.del(queue.key);
    assert.deepEqual(await worker.runReady(), NOTHING);
});

test("signals are heard while the worker runs, and no longer", async () => {
    const queue = fresh(), worker = new Worker(client).task(queue.key, () => {});
    const before = process.listenerCount("SIGTERM"), ended = worker.run();
    assert.equal(process.listenerCount("SIGTERM"), before + 1);
    process.kill(process.pid, "SIGTERM");
    await ended;
    assert.equal(process.listenerCount("SIGTERM"), before);
});

const handler = () => {};
const WRONG = [
    [TypeError, "the client is 5: expected a client of npm's redis", () => new Worker(5)],
    [TypeError, "expected a client or a cluster, no pool", () => new Worker({ sendCommand() {} })],
    [TypeError, "the client is one of createSentinel: expected sentinelPrimary(...)",
        () => new Worker({ sendCommand() {}, getSentinelNode() {} })],
    [RangeError, "jobs is 0: expected an integer from 1 to 10000", () => new Worker(client, { jobs: 0 })],
    [RangeError, "lease is 4294967296: expected an integer from 1 to 4294967295",
        () => new Worker(client, { lease: 2 ** 32 })],
    [RangeError, "grace is -1: expected an integer from 0 to 2147483647",
        () => new Worker(client, { grace: -1 })],
    [RangeError, "block is 0: expected an integer from 1 to 3600000", () => new Worker(client, { block: 0 })],
    [TypeError, "timeout is '1s': expected an integer", () => new Worker(client, { timeout: "1s" })],
    [RangeError, "expected 255 bytes at most",
        () => new Worker(client, { name: "\u00e4".repeat(128) })],
    [TypeError, "there is no option 'concurrency': expected name, lease, jobs",
        () => new Worker(client, { concurrency: 5 })],
    [TypeError, "the queue is undefined: expected a string",
        () => new Worker(client).task(undefined, handler)],
    [TypeError, "the handler is 'ok': expected a function", () => new Worker(client).task("s", "ok")],
    [RangeError, "jobs is 10001: expected an integer from 1 to 10000",
        () => new Worker(client).task("s", handler, { jobs: 10001 })],
    [RangeError, "timeout is 0: expected an integer from 1 to 2147483647",
        () => new Worker(client).task("s", handler, { timeout: 0 })],
    [RangeError, "timeout is 2147483648: expected an integer from 1 to 2147483647",
        () => new Worker(client).task("s", handler, { timeout: 2 ** 31 })],
    [TypeError, "timeout is '5s': expected an integer from 1 to 2147483647",
        () => new Worker(client).task("s", handler, { timeout: "5s" })],
    [TypeError, "there is no option 'limit': expected jobs, timeout",
        () => new Worker(client).task("s", handler, { limit: 5 })],
    [Error, "'s' has a handler already", () => new Worker(client).task("s", handler).task("s", handler)],
    [RangeError, "delay is -1: expected an integer from 0", () => new Retry(-1)],
    [RangeError, "delay is -1: expected an integer from 0", () => new Back(-1)],
    [RangeError, "delay is Invalid Date: expected a valid Date", () => new Retry(new Date("soon"))],
];

for (const [type, message, call] of WRONG) {
    test(`${type.name}: ${message}`, () => assert.throws(call, (error) => {
        assert.ok(error instanceof type && error.message.includes(message), `${error.name}: ${error.message}`);
        return true;
    }));
}
