// SPDX-License-Identifier: MIT
// Queue and Worker of clients/node with their tasks in a file: each command and each reply, the caller's
// transaction, and the failures of a file. test_node.py runs it, with a folder that has a new file, new.db.
// TICKWHEEL_DRIVER: the driver of SQLite.
"use strict";
const assert = require("assert");
const { execFileSync } = require("child_process");
const { once } = require("events");
const fs = require("fs");
const { join } = require("path");
const test = require("node:test");
const { promisify } = require("util");
const { Queue, SyncQueue, Values, Worker, File, FileError, TickwheelError, TaskIsDead, WrongArgument, WrongFormat,
    NoRights, Unavailable, WorkerError, Back, Dead, Retry, connect } = require("tickwheel");
const drivers = require("../../../clients/node/lib/drivers");
const { OneFile } = require("../../../clients/node/lib/filelink");
const { Kept } = require("../../../clients/node/lib/kept");
const { Place } = require("../../../clients/node/lib/place");
const { one } = require("../../../clients/node/lib/statements");
const limits = require("./limits");

const DRIVER = process.env.TICKWHEEL_DRIVER, FOLDER = process.argv[2];
const IS_SYNC = DRIVER !== "sqlite3";
const FAR = 3600000, YEAR_2100 = new Date(4102444800000), NO_SIGNALS = { signals: [] };
const NOTHING = { done: 0, failed: 0, died: 0, back: 0, notYours: 0 };
const LOADED = drivers.load(DRIVER);
let count = 0;

/** Returns the path of a new file. */
function freshPath() {
    const path = join(FOLDER, `tasks${count++}.db`);
    fs.copyFileSync(join(FOLDER, "new.db"), path);
    return path;
}

const open = (path, options = {}) => connect(`sqlite:///${path}`, { driver: DRIVER, ...options });

async function fresh(options, fileOptions) {
    const path = freshPath(), home = await open(path, fileOptions);
    return { path, home, queue: new Queue(home, "work", options) };
}

/** Another connection to the file, which does statements of SQL. */
async function other(path) {
    const made = await drivers.open(LOADED, path, false);
    await made.run(one("PRAGMA busy_timeout = 60000"));
    return { do: async (...statement) => made.run(one(...statement)), close: async () => made.close() };
}

/** A connection as a program makes it, with `exec` that is awaited. */
async function ofCaller(path) {
    const [, module] = LOADED;
    const db = IS_SYNC ? new (module.DatabaseSync || module)(path) : new module.Database(path);
    return { db, exec: IS_SYNC ? async (sql) => db.exec(sql) : promisify(db.exec.bind(db)) };
}

/** Whether an error is of this class, with this text, and its cause is a FileError with this code. */
function because(type, code, text = /./) {
    return ({ constructor, message, cause }) => constructor === type && text.test(message)
        && cause instanceof FileError && cause.code === code;
}

async function list(iterator) {
    const found = [];
    for await (const each of iterator) found.push(each);
    return found;
}

const take = (home, most = 10, lease = 60000) => home.take([`t${count++}-name`, ["work"], "me", lease, most]);

/** A worker with one queue, and its promise of the counts. */
function begin(home, handler, options = {}) {
    const worker = new Worker(home, { lease: 60000, ...options }).task("work", handler);
    return [worker, worker.run(NO_SIGNALS)];
}


// Calls

test("a task that was put is there with all its fields", async () => {
    const { queue } = await fresh(), start = Date.now();
    assert.equal(await queue.put("a", "one", { delay: FAR }), "a");
    const { due, remaining, next, ...task } = await queue.get("a");
    assert.ok(due.getTime() >= start + FAR && due.getTime() <= Date.now() + FAR + 1);
    assert.deepEqual(next, due);
    assert.ok(remaining > FAR - 60000 && remaining <= FAR + 1);
    assert.deepEqual(task, { id: "a", every: null, times: 1, target: "", kind: "workers", maxlen: null,
        missed: null, missedPeriods: 0, maxLate: null, attempt: 0, lapses: 0, replaced: false,
        state: "waiting", worker: "", error: "", payload: ["one"] });
    assert.equal(await queue.get("b"), null);
    assert.equal(await queue.count(), 1);
    await queue.put("a", { order: 42 });
    assert.deepEqual((await queue.get("a")).json, { order: 42 });
});

test("options of put", async () => {
    const { queue, path } = await fresh();
    await queue.put("a", "x", { at: YEAR_2100, every: 60000, times: 3, missed: "skip", maxLate: 5000, tries: 7,
        backoff: { first: 100, factor: 1.5, max: 1000, jitter: 20 } });
    const task = await queue.get("a"), db = await other(path);
    assert.deepEqual([task.due, task.every, task.times, task.missed, task.maxLate],
        [YEAR_2100, 60000, 3, "skip", 5000]);
    const look = await db.do("SELECT tries, backoff_ms, factor, backoff_max_ms, jitter FROM tw_task");
    assert.deepEqual(Object.values(look), [7, 100, 1.5, 1000, 20]);
    await queue.put("a", "y", { at: 5, keepDue: true, condition: "xx", every: 60000 });
    assert.deepEqual((await queue.get("a")).due, YEAR_2100);
    await db.do("UPDATE tw_task SET times = 9223372036854775807"); // More than a number of JavaScript has.
    assert.equal((await queue.get("a")).times, 2 ** 63);
    assert.deepEqual([(await queue.get("a")).payload, await queue.next()],
        [["y"], { id: "a", due: YEAR_2100, next: YEAR_2100 }]);
    await db.close();
});

test("conditions of put and move", async () => {
    const { queue } = await fresh();
    assert.equal(await queue.put("a", "1", { delay: FAR, condition: "xx" }), null);
    assert.equal(await queue.put("a", "1", { delay: FAR, condition: "nx" }), "a");
    assert.equal(await queue.put("a", "2", { delay: FAR, condition: "nx" }), null);
    assert.equal(await queue.put("a", "2", { delay: 60000, condition: "lt" }), "a");
    assert.equal(await queue.move("a", { delay: 5000, condition: "gt" }), false);
    assert.equal(await queue.move("a", { at: YEAR_2100, condition: "gt" }), true);
    assert.equal(await queue.move("b", { delay: 0 }), null);
    assert.deepEqual(await queue.cancel("a", "b"), [1, 0]);
    assert.equal(await queue.next(), null);
    assert.match(await queue.put(null, "x"), /^[0-9a-f]{16}$/);
});

test("bytes that are no text", async () => {
    const { queue } = await fresh({ buffers: true });
    const bytes = Buffer.from([0, 255, 13, 10]), id = Buffer.from([254]);
    for (const payload of [bytes, new Uint8Array(bytes), "", Buffer.alloc(0), "z\u00e4"]) {
        await queue.put(id, payload, { delay: FAR });
        assert.deepEqual((await queue.get(id)).payload, [Buffer.from(payload)]);
    }
    assert.deepEqual(await queue.cancel(id), [1]);
});

test("a pause and a promotion", async () => {
    const { queue, home } = await fresh();
    assert.deepEqual([await queue.resume(), await queue.pause()], [false, true]);
    await queue.put("ready", "x");
    assert.deepEqual(await take(home), []);
    assert.deepEqual([await queue.pause(), await queue.resume()], [false, true]);
    for (const id of ["a", "b", "c"]) await queue.put(id, "x", { delay: FAR });
    assert.deepEqual([await queue.promote("a"), await queue.promote("a")], [true, false]);
    assert.deepEqual([await queue.promoteAll(), await queue.promoteAll()], [2, 0]);
    assert.equal((await queue.get("a")).state, "ready");
});

test("attempts, and a task that stands behind one", async () => {
    const { queue, home } = await fresh();
    await queue.put("a", "x", { at: 1 });
    await queue.put("b", "x", { at: 2 });
    const [[key, id, token, due, attempt, payload, missed], [, , back]] = await take(home);
    assert.deepEqual([key, String(id), due, attempt, payload.map(String), missed], ["work", "a", 1, 1, ["x"], 0]);
    assert.match(token, /^[0-9a-f]{16}$/);
    await queue.put("a", "y");
    assert.deepEqual([(await queue.get("a")).state, (await queue.get("a")).replaced], ["leased", true]);
    assert.deepEqual([(await queue.get("a")).worker, await queue.cancel("c", "b")], ["me", [0, 2]]);
    const tell = (command, ...words) => home.sendCommand([command, "work", id, ...words]);
    assert.equal(await tell("TW.TOUCH", token, "LEASE", "120000"), (await queue.get("a")).next.getTime());
    for (const bad of [["TW.TOUCH", "LEASE", "1"], ["TW.NACK"], ["TW.ACK"]]) {
        const [command, ...rest] = bad;
        assert.equal(await tell(command, back, ...rest), command === "TW.ACK" ? 0 : null);
    }
    assert.equal(await tell("TW.ACK", token), 1);
    const [[, , again]] = await take(home);
    assert.equal(await tell("TW.NACK", again, "AT", "4102444800000", "ERROR", "no"), 4102444800000);
    assert.deepEqual([(await queue.get("a")).error, (await queue.get("a")).next], ["no", YEAR_2100]);
});

test("dead tasks", async () => {
    const { queue, home } = await fresh(), start = Date.now();
    for (const id of ["a", "b", "c"]) {
        await queue.put(id, "x", { at: 1, tries: 1 });
        const [[key, name, token]] = await take(home);
        assert.equal(await home.sendCommand(["TW.NACK", key, name, token, "ERROR", Buffer.from(`no ${id}`)]), 0);
    }
    const [first, ...rest] = await queue.dead();
    assert.ok(first.dead.getTime() >= start && first.due.getTime() === 1);
    assert.deepEqual([first.id, first.attempt, first.error, first.lapses, first.next], ["a", 1, "no a", 0, null]);
    assert.deepEqual(rest.map((dead) => dead.id), ["b", "c"]);
    assert.deepEqual((await queue.dead({ count: 1, after: "a" })).map((dead) => dead.id), ["b"]);
    assert.deepEqual((await list(queue.allDead())).map((dead) => dead.id), ["a", "b", "c"]);
    await assert.rejects(queue.dead({ after: "d" }), { message: "AFTER is 'd': expected the id of a dead task" });
    assert.deepEqual([await queue.replay("a", { delay: FAR }), await queue.replay("a")], [true, false]);
    assert.deepEqual([await queue.purge("b"), await queue.purge("b")], [true, false]);
    assert.equal(await queue.replayAll({ at: YEAR_2100 }), 1);
    assert.deepEqual((await queue.get("c")).due, YEAR_2100);
    assert.equal(await queue.purgeAll(), 0);
});

test("waiting tasks in their order, page by page", async () => {
    const { queue, path } = await fresh(), { db } = await ofCaller(path), at = (ms) => new Date(+YEAR_2100 + ms);
    const id = Buffer.from([254]);
    for (const [name, ms] of [["d", 1], ["a", 0], [id, 0], ["c", 1]]) await queue.put(name, "x", { at: at(ms) });
    await queue.put("ready", "x");
    const rows = [["a", 0], ["\ufffd", 0], ["d", 1], ["c", 1]].map(([name, ms]) =>
        ({ id: name, due: at(ms), next: at(ms) }));
    for (const one of [queue, queue.on(db)]) {
        for (const count of [1, 2, 3, 10000]) {
            assert.deepEqual(await list(one.range({ count })), rows);
            assert.deepEqual(await list(one.range({ last: at(0), count })), rows.slice(0, 2));
            assert.deepEqual(await list(one.range({ first: at(1), count })), rows.slice(2));
        }
        assert.deepEqual(await list(one.range({ first: at(2) })), []);
    }
});

test("looks at a file whose clock was set back", async () => {
    const { queue, path } = await fresh(), db = await other(path), far = 6000000000000;
    for (const number of [0, 1, 2]) await queue.put(`t${number}`, "x", { at: +YEAR_2100 + number });
    await db.do("UPDATE tw_task SET place_ms = ? WHERE id = CAST('t0' AS BLOB)", far);
    await db.do("UPDATE tw_meta SET clock_ms = ?", far);
    for (const count of [1, 2, 3]) {
        assert.deepEqual((await list(queue.range({ count }))).map((row) => row.id), ["t0", "t1", "t2"]);
    }
    assert.equal((await queue.next()).id, "t0");
    assert.deepEqual(await queue.forecast({ step: 3000000000000, steps: 1 }), [3]);
    await db.close();
});

test("the counts of a queue", async () => {
    const { queue, home } = await fresh();
    assert.equal(await queue.stats(), null);
    await queue.pause();
    assert.deepEqual([(await queue.stats()).paused, (await queue.stats()).tasks], [true, 0]);
    await queue.resume();
    await queue.put("dead", "x");
    const [[key, id, token]] = await take(home);
    await home.sendCommand(["TW.NACK", key, id, token, "DEAD"]);
    await queue.put("leased", "x");
    await take(home);
    await queue.put("ready", "x", { at: 1 });
    await queue.put("waiting", "x", { at: YEAR_2100 });
    const { oldestReady, ...stats } = await queue.stats(), none = {};
    for (const name of ["late", "held", "routes", "bytes", "taken", "done", "failed", "lapsed", "back", "died",
        "dropped", "skipped", "coalesced", "delivered", "replaced"]) none[name] = null;
    assert.ok(oldestReady >= 0 && oldestReady < FAR);
    assert.deepEqual(stats, { tasks: 3, waiting: 1, ready: 1, leased: 1, dead: 1, paused: false, next: YEAR_2100,
        ...none });
});

/** Returns the next of a row of numbers that looks random. */
function randomFrom(seed) {
    let state = seed;
    return (below) => {
        state = (state * 48271) % 2147483647;
        return state % below;
    };
}

/** A step is 1000 s, and each time lies in the middle of one. So the two may look one after the other. */
test("a forecast is that of the command", async () => {
    const { queue, path } = await fresh(), db = await other(path);
    const middle = 1000 * (Math.floor(Date.now() / 1000) + 500), step = 1000000, random = randomFrom(7);
    const of = (...values) => values[random(values.length)];
    await db.do("BEGIN IMMEDIATE");
    for (let number = 0; number < 600; number++) {
        const every = of(null, step, 2 * step, 7 * step), missed = of("burst", "skip", "coalesce");
        await db.do("INSERT INTO tw_put(queue, id, due_ms, every_ms, times, missed) VALUES ('work', ?, ?, ?, ?, ?)",
            `t${number}`, middle + step * (random(45) - 20), every, every && of(null, 1, 2, 9), every && missed);
        if (random(2)) continue; // Others are retries, or tasks that were given back.
        const next = middle + step * random(25), attempt = random(3);
        const stands = attempt && every && missed === "coalesce" ? random(4) : 0;
        await db.do("UPDATE tw_task SET next_ms = ?, place_ms = ?, attempt = ?, missed_periods = ?"
            + " WHERE id = CAST(? AS BLOB)", next, next, attempt, stands, `t${number}`);
    }
    await db.do("COMMIT");
    const command = join(process.env.TICKWHEEL_BUILD, "tickwheel"), words = ["tasks", "--store", path, "--queue", "work",
        "--json", "forecast", "--step", "1000s", "--steps", "20"], told = execFileSync(command, words);
    assert.deepEqual(await queue.forecast({ step, steps: 20 }), JSON.parse(told).counts);
    await db.close();
});

test("a take passes over a thousand tasks that are too late, and the next one goes on", async () => {
    const { queue, home, path } = await fresh(), db = await other(path);
    await db.do("WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1001)"
        + " INSERT INTO tw_put(queue, id, due_ms, max_late_ms) SELECT 'work', 'late' || n, 1, 1 FROM n");
    await queue.put("a", "x");
    const next = new Queue(home, "next"); // A take looks behind no queue in which it has to go on.
    await next.put("b", "x");
    assert.deepEqual(await home.take(["both queues", ["work", "next"], "me", 60000, 10]), []);
    const [worker, counts] = begin(home, () => {});
    await once(worker, "done");
    await worker.stop();
    assert.deepEqual([await queue.count(), (await counts).done, await next.count()], [0, 1, 1]);
    await db.close();
});

// Wrong values: an error that says which are right, and nothing changes

const REFUSED = [
    [RangeError, "payload has 2 values: expected one, as this home is a file", (q) => q.put("a", new Values("x", "y"))],
    [WrongArgument, "id: expected text or a blob of 1 to 960 bytes", (q) => q.put("", "x")],
    [WrongArgument, "id: expected text or a blob of 1 to 960 bytes", (q) => q.put("x".repeat(961), "x")],
    [WrongArgument, "id has 0 bytes: expected 1 to 1024", (q) => q.get("")],
    [WrongArgument, "id has 1025 bytes: expected 1 to 1024", (q) => q.purge("x".repeat(1025))],
    [WrongArgument, "id: expected text or a blob of 1 to 1024 bytes",
        (q) => q.cancel("b", "x".repeat(1025))],
    [TaskIsDead, "the task is dead", (q) => q.move("dead", { delay: 1 })],
    [RangeError, "key is <Buffer ff>: expected UTF-8", (q, home) => new Queue(home, Buffer.from([255])).count()],
    [WrongArgument, "queue: expected UTF-8 text of 1 to 255 bytes", (q, home) => new Queue(home, "").put("a", "x")],
    [TypeError, "TW.SEND: a file has no targets: put a task for workers, or send this one in a server with the module",
        (q) => q.send("target", "b", { x: 1 })],
    [Error, "TW.TOP: a file has no such statement", (q, home) => home.sendCommand(["TW.TOP", "work"])],
];

test("values that a file refuses", async () => {
    const { queue, home } = await fresh();
    await queue.put("dead", "x");
    const [[key, id, token]] = await take(home);
    await home.sendCommand(["TW.NACK", key, id, token, "DEAD"]);
    await queue.put("b", "x", { delay: FAR });
    for (const [type, message, call] of REFUSED) {
        await assert.rejects(async () => call(queue, home), (error) => {
            assert.ok(error instanceof type && error.message.includes(message), `${error.stack}`);
            return true;
        });
    }
    assert.deepEqual([await queue.count(), (await queue.get("b")).state], [1, "waiting"]);
});

test("the arguments of a file and of connect()", async () => {
    const wrong = [
        [RangeError, "path is '': expected a file", () => new File("")],
        [RangeError, "path is ':memory:': expected a file", () => open(":memory:")],
        [TypeError, "path is 5: expected a string", () => new File(5)],
        [RangeError, "timeout is -1: expected an integer from 0", () => new File("a", { timeout: -1 })],
        [RangeError, "driver is 'sqlite4': expected 'node:sqlite' or", () => new File("a", { driver: "sqlite4" })],
        [TypeError, "there is no option 'wait': expected timeout, driver", () => open("a", { wait: 1 })],
        [RangeError, "expected sqlite:///FILE", () => connect("sqlite://shop.db")],
        [RangeError, "expected sqlite:///FILE", () => connect("sqlite:///a?b")],
        [RangeError, "expected sqlite:///FILE", () => connect("sqlite:///")],
        [RangeError, "the url's scheme is 'amqp': expected redis, rediss, unix", () => connect("amqp://h")],
        [RangeError, "the url's scheme is 'h': expected redis", () => connect("h:7")],
        [RangeError, "the url's scheme is 'redis': expected redis", () => connect("redis://")],
        [RangeError, "the url's scheme is 'undefined': expected redis", () => connect()],
        [RangeError, "expected redis+sentinel://HOST:PORT", () => connect("redis+sentinel://a")],
        [RangeError, "expected redis+sentinel://HOST:PORT", () => connect("redis+sentinel:///s")],
        [RangeError, "the database of redis+sentinel://a/s/x is 'x'", () => connect("redis+sentinel://a/s/x")],
        [RangeError, "the sentinel is 'a:b'", () => connect("redis+sentinel://a:b/s")],
        [RangeError, "expected unix:///PATH", () => connect("unix://h/a")],
        [TypeError, "db is null: expected a connection of better-sqlite3", () => new SyncQueue(null, "q")],
    ];
    for (const [type, message, call] of wrong) {
        await assert.rejects(async () => call(), (error) => {
            assert.ok(error instanceof type && error.message.includes(message), error.stack);
            return true;
        });
    }
    await assert.rejects(open(join(FOLDER, "none", "tasks.db")), because(TickwheelError, "SQLITE_CANTOPEN"));
});

// Others that use the file

test("changes wait for others that write, in their order, and the program goes on meanwhile", async () => {
    const { queue, path } = await fresh(), db = await other(path);
    await queue.put("a", "x", { delay: FAR });
    await db.do("BEGIN IMMEDIATE");
    const puts = [];
    for (let i = 0; i < 100; i++) {
        puts.push(queue.put("b", `${i}`, { delay: FAR }));
        assert.equal(await queue.count(), 1); // A look does not wait.
        await fs.promises.readFile(join(FOLDER, "new.db")); // Meanwhile the changes so far have tried again.
    }
    await db.do("COMMIT");
    assert.deepEqual(await Promise.all(puts), Array(100).fill("b"));
    assert.equal((await queue.get("b")).payload[0], "99");
    await db.close();
});

test("a change does not wait for ever", async () => {
    const { queue, path } = await fresh({}, { timeout: 0 }), db = await other(path);
    await db.do("BEGIN IMMEDIATE");
    await assert.rejects(queue.put("a", "x"), because(Unavailable, "SQLITE_BUSY", /^database is locked$/));
    await db.do("COMMIT");
    assert.equal(await queue.put("a", "x"), "a");
    await db.close();
});

test("a worker goes on when others have written", async () => {
    const { queue, home, path } = await fresh({}, { timeout: 0 }), db = await other(path), trouble = [];
    await queue.put("a", "x");
    const [worker, counts] = begin(home, async () => {
        await db.do("BEGIN IMMEDIATE"); // The acknowledgement waits for it.
    });
    worker.on("trouble", (error) => {
        if (trouble.push(error.message) === 1) db.do("COMMIT");
    });
    await once(worker, "done");
    await worker.stop();
    assert.deepEqual([await counts, trouble[0]], [{ ...NOTHING, done: 1 }, "database is locked"]);
    await db.close();
});

// Workers

test("events, the counts, and a stop of a worker that waits", async () => {
    const { queue, home } = await fresh(), told = [];
    const handlers = {
        done: () => {},
        retry() { throw new Retry(YEAR_2100, "later"); },
        dead() { throw new Dead("never"); },
        back() { throw new Back(FAR); },
    };
    for (const id of Object.keys(handlers)) await queue.put(id, id);
    const [worker, counts] = begin(home, (job) => handlers[job.text](job), { block: 3600000, name: "desk" });
    for (const name of ["done", "failed", "dead", "back"]) {
        worker.on(name, (job, error, next) => {
            told.push([name, job.id, next]);
            worker.emit("told");
        });
    }
    while (told.length < 4) await once(worker, "told");
    await worker.stop();
    assert.deepEqual(await counts, { done: 1, failed: 2, died: 1, back: 1, notYours: 0 });
    const next = Object.fromEntries(told.map(([name, id, time]) => [`${name} ${id}`, time]));
    assert.deepEqual(next, { "done done": undefined, "failed retry": YEAR_2100, "dead dead": undefined,
        "back back": undefined });
    assert.deepEqual([(await queue.get("dead")).error, (await queue.get("back")).attempt], ["never", 0]);
});

/** Resolves when a worker that waits has looked three times for changes of the file. */
function looked(home) {
    return new Promise((resolve) => {
        let left = 3;
        home.version = (...args) => {
            if (--left === 0) {
                delete home.version;
                resolve();
            }
            return File.prototype.version.apply(home, args);
        };
    });
}

test("a worker sees tasks that its own program and others put, and those that become due", async () => {
    const { queue, home, path } = await fresh(), elsewhere = new Queue(await open(path), "work");
    const [worker, counts] = begin(home, () => {}, { block: 3600000 });
    for (const each of [queue, elsewhere]) {
        for (const delay of [0, 30]) {
            await looked(home);
            const done = once(worker, "done");
            await each.put("a", "x", { delay });
            await done;
        }
    }
    await worker.stop();
    assert.equal((await counts).done, 4);
});

test("a task that is cancelled is not yours, and queues with places of their own are served", async () => {
    const { queue, home } = await fresh(), own = new Queue(home, "own");
    await queue.put("a", "x");
    await own.put("b", "x");
    const worker = new Worker(home, { lease: 30 })
        .task("work", async (job) => {
            await queue.cancel("a");
            if (!job.signal.aborted) await once(job.signal, "abort");
        }).task("own", () => {}, { jobs: 1 });
    const counts = worker.run(NO_SIGNALS);
    await Promise.all([once(worker, "notYours"), once(worker, "done")]);
    await worker.stop();
    assert.deepEqual(await counts, { ...NOTHING, done: 1, notYours: 1 });
});

test("tasks that are taken too late for the worker go back", async () => {
    const { queue, home } = await fresh(), links = new OneFile(home);
    await queue.put("a", "x", { tries: 1 });
    const link = await links.find();
    await link.connect();
    const taken = link.sendCommand(["TW.TAKE", "1", "work", "LEASE", "60000", "COUNT", "1", "NAME", "me"]);
    link.destroy();
    await taken;
    assert.deepEqual([(await queue.get("a")).state, (await queue.get("a")).attempt], ["ready", 0]);
});

test("a payload of JSON, jobs that run at once, and no script", async () => {
    const { queue, home } = await fresh(), seen = [];
    await queue.put("a", { order: 42 });
    await queue.put("b", ["x"], { delay: FAR });
    const worker = new Worker(home).task("work", async (job) => {
        await assert.rejects(job.ackThen("return 1"),
            { name: "TypeError", message: /^the home of '[ab]' is a file: expected job.ackOn\(db\)/ });
        seen.push(job.json);
    });
    assert.deepEqual(await worker.runReady({ throwErrors: true }), { ...NOTHING, done: 1 });
    assert.equal(await queue.promote("b"), true);
    assert.deepEqual(await worker.runReady({ throwErrors: true }), { ...NOTHING, done: 1 });
    assert.deepEqual(seen, [{ order: 42 }, ["x"]]);
});

limits.testLimits(async () => {
    const { home, queue } = await fresh();
    return { home, queue, hear(before) {
        home.call = async (words, ...rest) => {
            await before(words);
            return File.prototype.call.call(home, words, ...rest);
        };
        return home;
    } };
});

// An effect together with the acknowledgement

/** Returns a connection of the caller to the file, with a table of effects. `noted` tells the ids that it has. */
async function withEffects(path) {
    const { db, exec } = await ofCaller(path), reader = await other(path);
    await exec("CREATE TABLE effects(id TEXT)");
    const ids = "SELECT group_concat(id) AS ids FROM (SELECT id FROM effects ORDER BY id)";
    return { db, exec, noted: async () => (await reader.do(ids)).ids, close: reader.close };
}

/** Handlers by the id of their jobs. `ack` acknowledges the job, and `note` writes the effect. */
const ACTS = {
    async committed({ exec, ack, note }) {
        await exec("BEGIN IMMEDIATE");
        await ack();
        await note();
        await exec("COMMIT");
    },
    async early({ exec, ack, note }) {
        await exec("BEGIN");
        await note();
        await ack();
        await exec("COMMIT");
    },
    async again({ exec, ack, note }) { // The first transaction is rolled back.
        await exec("BEGIN IMMEDIATE");
        await ack();
        await exec("ROLLBACK");
        await ACTS.committed({ exec, ack, note });
    },
    async afterwards(by) {
        await ACTS.committed(by);
        throw new Back(FAR);
    },
    async twice({ exec, ack, note }) {
        await exec("BEGIN IMMEDIATE");
        await ack();
        await assert.rejects(ack, /^Error: 'twice' in 'work' was acknowledged before: expected one ackOn\(\)$/);
        await note();
        await exec("COMMIT");
    },
    async undone({ exec, ack, note }) { // The handler returns, so the job is done all the same.
        await exec("BEGIN IMMEDIATE");
        await ack();
        await note();
        await exec("ROLLBACK");
    },
    async open({ exec, ack, note }) { // The worker waits for the end of the transaction.
        await exec("BEGIN IMMEDIATE");
        await ack();
        await note();
        setImmediate(() => exec("COMMIT"));
    },
    async raises({ exec, ack, note }) {
        await exec("BEGIN IMMEDIATE");
        await ack();
        await note();
        await exec("ROLLBACK");
        throw new Error("no");
    },
    alone: ({ ack }) => ack(),
    wrong: ({ job }) => job.ackOn("shop.db"),
    async elsewhere({ job }) {
        const { db, exec } = await ofCaller(join(FOLDER, `empty${count++}.db`));
        await exec("BEGIN");
        await job.ackOn(db);
    },
    async cancelled({ exec, ack, note }) {
        await exec("BEGIN IMMEDIATE; INSERT INTO tw_cancel(queue, id) VALUES ('work', CAST('cancelled' AS BLOB))");
        await note();
        await ack().catch(async (error) => {
            await exec("COMMIT");
            throw error;
        });
    },
};
const ENDS = {
    done: ["committed", "early", "again", "afterwards", "twice", "undone", "open"],
    dead: ["raises", "alone", "wrong", "elsewhere"],
    notYours: ["cancelled"],
};
const SAID = {
    raises: /^Error: no$/,
    alone: /^WrongArgument: no transaction is open on db: expected BEGIN IMMEDIATE before job.ackOn\(db\)$/,
    wrong: /^TypeError: db is 'shop.db': expected a connection of /,
    elsewhere: /^TickwheelError: the file has no tables of Tickwheel/,
};

test("a job is acknowledged in a transaction of its handler", async () => {
    const { queue, home, path } = await fresh(), { db, exec, noted, close } = await withEffects(path);
    const ends = { done: [], dead: [], notYours: [] };
    for (const id of Object.keys(ACTS)) await queue.put(id, "x", { tries: 1 });
    const worker = new Worker(home, { lease: 600000 }).task("work", (job) => ACTS[job.id]({ job, exec,
        ack: async () => job.ackOn(db), note: () => exec(`INSERT INTO effects VALUES ('${job.id}')`) }));
    for (const [name, ids] of Object.entries(ends)) worker.on(name, (job) => ids.push(job.id));
    const warned = once(process, "warning");
    assert.deepEqual(await worker.runReady(), { done: 7, failed: 4, died: 4, back: 0, notYours: 1 });
    assert.deepEqual([ends, await noted()], [ENDS, "afterwards,again,cancelled,committed,early,open,twice"]);
    for (const [id, said] of Object.entries(SAID)) assert.match((await queue.get(id)).error, said);
    assert.match((await warned)[0].message, /^'afterwards' in 'work' is done, and its handler failed after the ack/);
    await close();
});

const ifTransactions = { skip: DRIVER !== "better-sqlite3" && "other drivers have no such functions" };

test("a function for db.transaction() acknowledges its job", ifTransactions, async () => {
    const { queue, home, path } = await fresh(), { db, noted, close } = await withEffects(path);
    await queue.put("a", "x", { tries: 1 });
    await queue.put("b", "x");
    const note = db.transaction((job) => {
        assert.equal(job.ackOn(db), undefined);
        db.prepare("INSERT INTO effects VALUES (?)").run(job.id);
        if (job.id === "a") throw new Error("no");
    });
    const worker = new Worker(home).task("work", (job) => note.immediate(job));
    assert.deepEqual(await worker.runReady(), { ...NOTHING, done: 1, failed: 1, died: 1 });
    assert.equal(await noted(), "b");
    await close();
});

test("a heartbeat behind the acknowledgement does not end the job", async () => {
    const { queue, home, path } = await fresh(), { db, exec, close } = await withEffects(path), lease = 3000;
    let beat, ended;
    const beaten = new Promise((resolve) => {
        beat = resolve;
    });
    home.call = async (words, ...rest) => {
        const reply = await File.prototype.call.call(home, words, ...rest);
        if (words[0] === "TW.TOUCH") beat(reply);
        return reply;
    };
    await queue.put("a", "x");
    const worker = new Worker(home, { lease }).task("work", async (job) => {
        await exec("BEGIN IMMEDIATE");
        await job.ackOn(db);
        await exec("COMMIT");
        ended = [await beaten, job.notYours];
        await new Promise(setImmediate); // By then the worker has seen the reply.
        ended.push(job.notYours);
    });
    assert.deepEqual(await worker.runReady({ throwErrors: true }), { ...NOTHING, done: 1 });
    assert.deepEqual(ended, [null, false, false]);
    await close();
});

test("an acknowledgement that was rolled back is none, and the next heartbeat knows", async () => {
    const { queue, home, path } = await fresh(), { db, exec, noted, close } = await withEffects(path);
    let beat;
    home.call = async (words, ...rest) => {
        const reply = await File.prototype.call.call(home, words, ...rest);
        if (words[0] === "TW.TOUCH") beat(reply);
        return reply;
    };
    const beaten = () => new Promise((resolve) => {
        beat = resolve;
    });
    await queue.put("a", "x");
    const worker = new Worker(home, { lease: 300 }).task("work", async (job) => {
        await exec("BEGIN IMMEDIATE");
        await job.ackOn(db);
        await exec("INSERT INTO effects VALUES ('a'); ROLLBACK");
        while (await beaten() === null) assert.ok(!job.signal.aborted);
        await queue.cancel("a");
        await limits.aborted(job.signal);
        await exec("BEGIN IMMEDIATE");
        await assert.rejects(async () => job.ackOn(db), /^NotYours: /);
        await exec("ROLLBACK");
    });
    assert.deepEqual(await worker.runReady(), { ...NOTHING, notYours: 1 });
    assert.equal(await noted(), null);
    await close();
});

/** Handlers whose time limit passes at some time. */
const BEYOND = {
    async after(by) {
        await ACTS.committed(by);
        limits.pass(limits.LIMIT);
    },
    async within({ exec, ack, note }) { // Committed while the worker waits for the end of the transaction.
        await exec("BEGIN IMMEDIATE");
        await ack();
        limits.pass(limits.LIMIT);
        await note();
        await exec("COMMIT");
    },
    async before({ exec, ack, note }) { // The acknowledgement is under way.
        await exec("BEGIN IMMEDIATE");
        const acked = ack();
        limits.pass(limits.LIMIT);
        await acked;
        await note();
        await exec("COMMIT");
    },
    async rolled({ exec, ack, note, job }) {
        await exec("BEGIN IMMEDIATE");
        await ack();
        limits.pass(limits.LIMIT);
        await exec("ROLLBACK");
        await limits.aborted(job.signal);
        await exec("BEGIN IMMEDIATE");
        await assert.rejects(ack, /^NotYours: /);
        await note();
        await exec("ROLLBACK");
    },
};

test("the acknowledgement in a transaction ends the time limit, which rests meanwhile", async () => {
    const { queue, home, path } = await fresh(), { db, exec, noted, close } = await withEffects(path);
    const stopped = {};
    for (const id of Object.keys(BEYOND)) await queue.put(id, "x", limits.LATER);
    const [worker, counts, told] = limits.begin(home, queue, async (job) => {
        await BEYOND[job.id]({ job, exec,
            ack: async () => job.ackOn(db), note: () => exec(`INSERT INTO effects VALUES ('${job.id}')`) });
        if (job.id !== "rolled") await limits.until(() => told.includes(`done ${job.id}`));
        stopped[job.id] = job.signal.aborted;
    });
    await limits.until(() => told.includes("failed rolled"));
    await worker.stop();
    assert.deepEqual([await counts, await noted()], [{ ...NOTHING, done: 3, failed: 1 }, "after,before,within"]);
    assert.deepEqual([told.length, stopped],
        [8, { after: false, within: false, before: stopped.before, rolled: true }]);
    await close();
});

const KILLED = `
    const { Worker, connect } = require("tickwheel"), [, path, driver] = process.argv, made = require(driver);
    const db = driver === "sqlite3" ? new made.Database(path) : new (made.DatabaseSync || made)(path);
    const exec = (sql) => new Promise((done, fail) => (driver === "sqlite3"
        ? db.exec(sql, (error) => (error ? fail(error) : done())) : done(db.exec(sql))));
    const handler = async (job) => {
        await exec("BEGIN IMMEDIATE");
        await job.ackOn(db);
        await exec("INSERT INTO effects VALUES ('" + job.id + "')");
        if (job.id === "t3") process.kill(process.pid, "SIGKILL");
        await exec("COMMIT");
    };
    connect("sqlite:///" + path, { driver })
        .then((home) => new Worker(home, { lease: 100 }).task("work", handler).runReady());`;

test("an effect happens once although its worker dies", async () => {
    const { queue, home, path } = await fresh(), { db, exec, noted, close } = await withEffects(path);
    const ids = ["t0", "t1", "t2", "t3", "t4", "t5"];
    for (const id of ids) await queue.put(id, "x", { backoff: { first: 1, factor: 1, max: 1 } });
    assert.throws(() => execFileSync(process.execPath, ["-e", KILLED, path, DRIVER], { stdio: "pipe" }),
        { signal: "SIGKILL" });
    const [worker] = begin(home, async (job) => {
        await exec("BEGIN IMMEDIATE");
        await job.ackOn(db);
        await exec(`INSERT INTO effects VALUES ('${job.id}')`);
        await exec("COMMIT");
        if (await queue.count() === 0) worker.emit("empty");
    }, { jobs: 1 });
    await once(worker, "empty");
    await worker.stop();
    assert.equal(await noted(), ids.join());
    await close();
});

// A file that goes away

for (const end of ["", "-wal", "-shm"]) {
    for (const how of ["removed", "replaced"]) {
        test(`a file whose ${end || "path"} is ${how} acknowledges nothing`, async () => {
            const { queue, home, path } = await fresh(), said = `${path}${end} was ${how} while it was open`;
            const [, counts] = begin(home, () => {});
            const ended = assert.rejects(counts, (error) => error instanceof WorkerError
                && error.message.startsWith(said) && error.cause.code === "TW_EREPLACED");
            await queue.put("a", "x", { delay: FAR });
            fs.renameSync(path + end, `${path}.old`);
            if (how === "replaced") fs.copyFileSync(`${path}.old`, path + end);
            for (const call of [() => queue.put("b", "x"), () => queue.get("a")]) {
                await assert.rejects(call, (error) => error instanceof TickwheelError && error.message.startsWith(said));
            }
            await ended;
            assert.equal(fs.existsSync(path + end), how === "replaced");
        });
    }
}

/** Does work while a function of fs fails. */
async function without(name, work) {
    const own = fs[name];
    fs[name] = () => {
        throw new Error(`${name} was called`);
    };
    try {
        return await work();
    } finally {
        fs[name] = own;
    }
}

test("no call asks for the times of the file", { skip: process.platform !== "linux" }, async () => {
    const { queue, home } = await fresh();
    await without("statSync", async () => {
        await queue.put("a", "x");
        assert.equal((await take(home)).length, 1);
        assert.equal((await queue.get("a")).state, "leased");
    });
});

test("a file that is replaced is noticed without /proc, and without O_PATH", async () => {
    for (const name of ["readlinkSync", "openSync"]) {
        await without(name, async () => {
            const { queue, path } = await fresh();
            await queue.put("a", "x", { delay: FAR });
            fs.renameSync(path, `${path}.old`);
            await assert.rejects(queue.put("b", "x"), /was removed while it was open/);
            fs.writeFileSync(path, "");
            await assert.rejects(queue.put("b", "x"), /was replaced while it was open/);
        });
    }
});

test("the look at a file leaves the locks of SQLite alone", async () => {
    const path = freshPath(), db = await other(path);
    await db.do("BEGIN IMMEDIATE");
    for (const end of ["", "-wal", "-shm"]) Place.of(path + end).release();
    const code = "const d = require(process.argv[1]), [, , path, driver] = process.argv;"
        + "d.open(d.load(driver), path, false).then(async (db) => db.run((function* () { yield ['BEGIN IMMEDIATE']; })()))"
        + ".then(() => console.log('no lock'), (error) => console.log(error.code))";
    const library = require.resolve("../../../clients/node/lib/drivers");
    assert.equal(execFileSync(process.execPath, ["-e", code, library, path, DRIVER]).toString(), "SQLITE_BUSY\n");
    await db.close();
});

test("a log beside no file, or beside an empty one, is left alone", async () => {
    const { path } = await fresh(), moved = `${path}.moved`;
    const db = await other(path);
    await db.do("INSERT INTO tw_put(queue, id, due_ms) VALUES ('work', 'a', 1)");
    fs.renameSync(path, moved);
    for (const make of [() => {}, () => fs.writeFileSync(path, "")]) {
        make();
        await assert.rejects(open(path), because(TickwheelError, "TW_EREPLACED", /-wal is the log of a file that is/));
    }
    assert.equal(fs.statSync(path).size, 0);
    for (const end of ["-wal", "-shm"]) fs.renameSync(path + end, moved + end);
    assert.equal(await new Queue(await open(moved), "work").count(), 1);
});

test("a file that moves while a change waits acknowledges nothing", async () => {
    const { queue, path } = await fresh(), db = await other(path);
    await db.do("BEGIN IMMEDIATE");
    const put = assert.rejects(queue.put("a", "x"), because(TickwheelError, "TW_EREPLACED", /was removed while it was/));
    await queue.count();
    fs.renameSync(path, `${path}.old`);
    await db.do("COMMIT");
    await put;
});

test("a connection is made once, and anew after it failed or was dropped", async () => {
    const made = [], kept = new Kept(() => {
        made.push(made.length);
        return made.length === 1 ? Promise.reject(new Error("no")) : Promise.resolve(made.length);
    });
    const both = await Promise.allSettled([kept.get(), kept.get()]);
    assert.deepEqual([made, both.map((one) => one.status)], [[0], ["rejected", "rejected"]]);
    assert.deepEqual(await Promise.all([kept.get(), kept.get()]), [2, 2]);
    assert.deepEqual([await kept.drop(), kept.drop(), await kept.get(), made], [2, null, 3, [0, 1, 2]]);
});

test("a failure of a promise that was dropped leaves the next one alone", async () => {
    const fails = [], kept = new Kept(() => new Promise((_, reject) => {
        fails.push(reject);
    }));
    const first = kept.get();
    kept.drop();
    const second = kept.get();
    fails[0](new Error("late"));
    await assert.rejects(first, /late/);
    assert.equal(kept.get(), second);
});

test("a file is used again after its last connection has been closed", async () => {
    const { queue, home, path } = await fresh();
    await queue.put("a", "x", { delay: FAR });
    const last = queue.put("b", "x", { delay: FAR });
    await home.close();
    assert.deepEqual([await last, fs.existsSync(`${path}-wal`)], ["b", false]);
    assert.equal(await queue.count(), 2);
    fs.unlinkSync(`${path}-wal`); // It is known anew.
    await assert.rejects(queue.count(), /-wal was removed while it was open/);
});

test("a symbolic link, a relative path and a name with signs", async () => {
    const { path, queue } = await fresh(), link = join(FOLDER, "a link?#%"), cwd = process.cwd();
    await queue.put("a", "x", { delay: FAR });
    fs.symlinkSync(path, link);
    process.chdir(FOLDER);
    const home = await open(encodeURIComponent("a link?#%"));
    process.chdir(cwd);
    assert.deepEqual([home.path, await new Queue(home, "work").count()], [fs.realpathSync(path), 1]);
});

test("tables of another format are refused by each call", async () => {
    const { queue, home, path } = await fresh(), db = await other(path), { db: mine } = await ofCaller(path);
    for (const id of ["a", "b"]) await queue.put(id, "x", { at: 1 });
    const [[, id, token]] = await take(home, 1), here = queue.on(mine);
    await db.do("UPDATE tw_meta SET format = 2");
    const said = because(WrongFormat, "TW_EFORMAT", /^format is 2: expected 1; the version that wrote it can read it$/);
    const calls = [queue, here].flatMap((q) => [() => q.put("a", "y"), () => q.move("b", { delay: 5 }),
        () => q.cancel("b"), () => q.get("a"), () => q.count(), () => q.next(), () => q.dead(),
        () => q.purgeAll(), () => q.replayAll()]);
    for (const call of [...calls, () => open(path)]) await assert.rejects(async () => call(), said);
    await assert.rejects(home.sendCommand(["TW.ACK", "work", id, token]), { code: "TW_EFORMAT" });
    await db.do("UPDATE tw_meta SET format = 1");
    assert.deepEqual([await queue.count(), (await queue.get("a")).attempt, (await queue.get("b")).payload],
        [2, 1, ["x"]]);
    await db.do("DROP TABLE tw_meta");
    await db.do("CREATE TABLE tw_meta(name TEXT, value)");
    await db.do("INSERT INTO tw_meta VALUES ('version', 3)");
    await assert.rejects(open(path), { message: "format is 0: expected 1; the version that wrote it can read it" });
    await db.close();
});

test("a file without tables gets them by the extension", async () => {
    const path = join(FOLDER, "tables.db");
    await assert.rejects(open(path), /has no tables .*cannot make them.*`tickwheel put --store FILE <\/dev\/null`/);
    const code = "const { Queue, connect } = require('tickwheel'), [, path, driver] = process.argv;"
        + "connect(`sqlite:///${path}`, { driver }).then((home) => new Queue(home, 'q').put('a', 'x'))"
        + ".then(console.log)";
    const folders = [process.env.TICKWHEEL_BUILD, process.env.LD_LIBRARY_PATH].join(":");
    const env = { ...process.env, LD_LIBRARY_PATH: folders };
    assert.equal(execFileSync(process.execPath, ["-e", code, path, DRIVER], { env }).toString(), "a\n");
});

// The transaction of the caller

test("a task is put, moved and cancelled in the caller's transaction", async () => {
    const { queue, path } = await fresh(), { db, exec } = await ofCaller(path), mine = queue.on(db);
    assert.ok(mine instanceof (IS_SYNC ? SyncQueue : Queue));
    await exec("CREATE TABLE orders(id)");
    for (const [end, there] of [["ROLLBACK", null], ["COMMIT", "waiting"]]) {
        await exec("BEGIN; INSERT INTO orders VALUES (1)");
        assert.equal(await mine.put("a", "x", { delay: FAR }), "a");
        assert.deepEqual([await mine.count(), await queue.count()], [1, 0]);
        await exec(end);
        assert.equal(((await queue.get("a")) || { state: null }).state, there);
    }
    await exec("BEGIN");
    assert.deepEqual([await mine.move("a", { at: YEAR_2100 }), await mine.promote("a"), await mine.cancel("a")],
        [true, true, [1]]);
    await exec("ROLLBACK");
    assert.equal((await queue.get("a")).state, "waiting");
    assert.equal(await mine.put("b", "x", { delay: FAR }), "b"); // It is a transaction of its own.
    assert.equal(await queue.count(), 2);
});

test("a call that fails in the caller's transaction changes nothing, and the transaction goes on", async () => {
    const { queue, path } = await fresh(), { db, exec } = await ofCaller(path), mine = queue.on(db);
    await exec("BEGIN");
    await mine.put("a", "x", { delay: FAR });
    const fail = async () => mine.cancel("a", "x".repeat(2000));
    await assert.rejects(fail, because(WrongArgument, "SQLITE_CONSTRAINT", /^id: expected/));
    await exec("COMMIT");
    assert.equal(await queue.count(), 1);
    await assert.rejects(fail, WrongArgument);
    await exec("BEGIN"); // None is open.
    await exec("COMMIT");
    assert.equal(await queue.count(), 1);
});

test("a connection that may only read", async () => {
    const { path } = await fresh(), { db, exec } = await ofCaller(path), mine = (await fresh()).queue.on(db);
    await exec("PRAGMA query_only = on");
    await assert.rejects(async () => mine.put("a", "x"), because(NoRights, "SQLITE_READONLY", /^attempt to write a re/));
    assert.equal(await mine.count(), 0);
});

test("calls at the same time on a connection of the caller", async () => {
    const { queue, path } = await fresh(), { db } = await ofCaller(path), mine = queue.on(db);
    const ids = ["a", "b", "c"];
    assert.deepEqual(await Promise.all(ids.map((id) => mine.put(id, "x", { delay: FAR }))), ids);
    assert.equal(await queue.count(), 3);
});

test("a connection whose file has no tables", async () => {
    const { db } = await ofCaller(join(FOLDER, `empty${count++}.db`));
    const queue = IS_SYNC ? new SyncQueue(db, "q") : new Queue(db, "q");
    await assert.rejects(async () => queue.put("a", "x"), /^TickwheelError: the file has no tables of Tickwheel: connect/);
});

const ifSync = { skip: !IS_SYNC && "sqlite3 calls back" };

test("a driver that waits has done the work when the call returns", ifSync, async () => {
    const { queue, path } = await fresh(), { db } = await ofCaller(path), mine = queue.on(db);
    assert.equal(mine.put("a", "x", { delay: FAR }), "a");
    assert.deepEqual([mine.count(), mine.get("a").payload, mine.dead(), mine.purgeAll()], [1, ["x"], [], 0]);
    assert.throws(() => mine.put("a", new Values("x", "y")), RangeError);
    assert.throws(() => mine.put("a", undefined), TypeError);
    assert.throws(() => new Queue(db, "work"), /expected new SyncQueue\(connection, key\), or queue.on/);
    if (db.transaction) {
        assert.throws(() => db.transaction(() => {
            mine.put("b", "x", { delay: FAR });
            mine.put("c".repeat(2000), "x");
        })(), WrongArgument);
        assert.equal(await queue.count(), 1);
    }
});

test("two copies of SQLite in a program are refused", async () => {
    const { queue } = await fresh();
    const db = IS_SYNC ? { prepare() {}, exec() {}, close() {}, all() {}, configure() {} }
        : { prepare() {}, exec() {}, close() {}, pragma() {} };
    assert.throws(() => queue.on(db), /two copies of SQLite break each other's locks: connect\(url, { driver:/);
});
