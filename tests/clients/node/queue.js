// SPDX-License-Identifier: MIT
// Queue of clients/node against a server: each command and each reply. test_node.py runs it.
"use strict";
const assert = require("assert");
const test = require("node:test");
const { createClient } = require("redis");
const { NotAQueue, Queue, Values } = require("tickwheel");
const { slotOf } = require("../../../clients/node/lib/slots");

const FAR = 3600000, YEAR_2100 = new Date(4102444800000);
const client = createClient({ url: process.env.TICKWHEEL_URL });
let count = 0;

function fresh(options) {
    return new Queue(client, `{node${count++}}:work`, options);
}

/** Takes the tasks that are ready, as a worker would, and lets them fail for the last time. */
async function kill(queue, ids) {
    for (const id of ids) await queue.put(id, "x", { tries: 1 });
    for (let i = 0; i < ids.length; i++) {
        const words = ["TW.TAKE", "1", queue.key, "LEASE", "60000", "BLOCK", "60000"];
        const [[key, id, token]] = await client.sendCommand(words);
        await client.sendCommand(["TW.NACK", key, id, token, "DEAD", "ERROR", `no ${id}`]);
    }
}

async function list(iterator) {
    const found = [];
    for await (const one of iterator) found.push(one);
    return found;
}

test.before(() => client.connect());
test.after(() => client.quit());

test("a task that was put is there with all its fields", async () => {
    const queue = fresh(), begin = Date.now();
    assert.equal(await queue.put("a", new Values("one", "two"), { delay: FAR }), "a");
    const { due, remaining, next, ...task } = await queue.get("a");
    assert.ok(due.getTime() >= begin + FAR && due.getTime() <= Date.now() + FAR);
    assert.deepEqual(next, due);
    assert.ok(remaining > FAR - 60000 && remaining <= FAR);
    assert.deepEqual(task, { id: "a", every: null, times: 1, target: "", kind: "workers", maxlen: null,
        missed: null, missedPeriods: 0, maxLate: null, attempt: 0, lapses: 0, replaced: false,
        state: "waiting", worker: "", error: "", payload: ["one", "two"] });
    assert.equal(await queue.get("b"), null);
    assert.equal(await queue.count(), 1);
});

test("options of put", async () => {
    const queue = fresh();
    await queue.put("a", "x", { at: YEAR_2100, every: 60000, times: 3, missed: "skip", maxLate: 5000, tries: 7,
        backoff: { first: 100, factor: 1.5, max: 1000, jitter: 20 } });
    const task = await queue.get("a");
    assert.deepEqual([task.due, task.every, task.times, task.missed, task.maxLate],
        [YEAR_2100, 60000, 3, "skip", 5000]);
    await queue.put("b", "x", { at: YEAR_2100.getTime(), every: 60000, missed: "burst" });
    const { due, times, missed } = await queue.get("b");
    assert.deepEqual([due, times, missed], [YEAR_2100, null, "burst"]);
});

test("the words of all options", () => {
    const queue = new Queue(client, "s");
    const words = queue.putWords("a", new Values(Buffer.from("p"), "q"), { delay: 5, condition: "nx", every: 10,
        times: 2, missed: "burst", tries: 3, backoff: { first: 1, factor: 2.25, max: 9, jitter: 0 } });
    assert.deepEqual(words.map(String), ["TW.PUT", "s", "a", "IN", "5", "NX", "EVERY", "10", "TIMES", "2",
        "MISSED", "burst", "TRIES", "3", "BACKOFF", "1", "2.25", "9", "JITTER", "0", "PAYLOAD", "p", "q"]);
    for (const options of [undefined, { every: null, times: null, maxLate: null }])
        assert.deepEqual(queue.putWords(null, "p", options),
            ["TW.PUT", "s", "*", "IN", "0", "PAYLOAD", "p"]);
    assert.deepEqual(queue.putWords("a", "p", { keepDue: true, condition: "xx" }),
        ["TW.PUT", "s", "a", "IN", "0", "XX", "KEEPDUE", "PAYLOAD", "p"]);
    assert.deepEqual(queue.cancelWords("a", "b"), ["TW.CANCEL", "s", "a", "b"]);
    assert.deepEqual(queue.moveWords("a", { at: 7, condition: "gt" }), ["TW.MOVE", "s", "a", "AT", "7", "GT"]);
});

test("conditions of put and move", async () => {
    const queue = fresh();
    assert.equal(await queue.put("a", "1", { delay: FAR, condition: "xx" }), null);
    assert.equal(await queue.put("a", "1", { delay: FAR, condition: "nx" }), "a");
    assert.equal(await queue.put("a", "2", { delay: FAR, condition: "nx" }), null);
    assert.equal(await queue.put("a", "2", { delay: 60000, condition: "gt" }), null);
    assert.equal(await queue.put("a", "2", { delay: 60000, condition: "lt" }), "a");
    assert.deepEqual((await queue.get("a")).payload, ["2"]);
    assert.equal(await queue.move("a", { delay: 5000, condition: "gt" }), false);
    assert.equal(await queue.move("a", { at: YEAR_2100, condition: "gt" }), true);
    assert.equal(await queue.move("b", { delay: 0 }), null);
    assert.deepEqual(await queue.next(), { id: "a", due: YEAR_2100, next: YEAR_2100 });
    assert.deepEqual(await queue.cancel("a", "b"), [1, 0]);
    assert.equal(await queue.next(), null);
});

test("the server makes ids", async () => {
    const queue = fresh();
    const ids = [];
    for (const id of [null, undefined]) ids.push(await queue.put(id, "x", { delay: FAR }));
    assert.match(ids[0], /^\d+-\d+$/);
    assert.deepEqual(await queue.cancel(...ids), [1, 1]);
});

test("bytes that are no text", async () => {
    const queue = fresh({ buffers: true }), bytes = Buffer.from([0, 255, 13, 10]), id = Buffer.from([254]);
    await queue.put(id, new Values(bytes, new Uint8Array([255, 1]), "text", ""), { delay: FAR });
    const found = (await queue.get(id)).payload;
    assert.deepEqual(found, [bytes, Buffer.from([255, 1]), Buffer.from("text"), Buffer.from("")]);
    assert.deepEqual(await queue.cancel(id), [1]);
});

test("a payload that is neither text nor bytes is JSON", async () => {
    const queue = fresh();
    const values = [[{ order: 42, to: ["ann"] }, '{"order":42,"to":["ann"]}'], [["x", 1], '["x",1]'],
        [42, "42"], [null, "null"], [true, "true"], [Object.create(null), "{}"],
        [YEAR_2100, '"2100-01-01T00:00:00.000Z"']];
    for (const [value, text] of values) {
        await queue.put("a", value, { delay: FAR });
        const task = await queue.get("a");
        assert.deepEqual([task.payload, task.text, task.json], [[text], text, JSON.parse(text)]);
    }
    const task = await queue.get("a");
    assert.equal(task.json, task.json); // It is read once.
    await queue.put("a", Buffer.from("no JSON"), { delay: FAR });
    await assert.rejects(async () => (await queue.get("a")).json, /^SyntaxError: payload begins with 'no JSON'/);
});

test("inside a transaction", async () => {
    const queue = fresh();
    const replies = await client.multi().set(`${queue.key}:order`, "placed")
        .addCommand(queue.putWords("a", "1", { delay: FAR }))
        .addCommand(queue.moveWords("a", { delay: 60000 }))
        .addCommand(queue.cancelWords("a", "b")).exec();
    assert.deepEqual(replies, ["OK", "a", 1, [1, 0]]);
});

test("tasks with a target", async () => {
    const queue = fresh(), stream = `${queue.key}:stream`, line = `${queue.key}:list`;
    const entry = new Map([["order", 42], [Buffer.from("who"), "ann"], ["to", ["b"]]]);
    assert.equal(await queue.send(stream, "a", entry, { at: YEAR_2100, maxlen: 9, tries: 2 }), "a");
    const { kind, target, maxlen, payload } = await queue.get("a");
    assert.deepEqual([kind, target, maxlen, payload.slice(0, 2)], ["stream", stream, 9, ["order", "42"]]);
    assert.equal(await queue.send(stream, "a", { order: 43 }, { condition: "nx" }), null);
    assert.equal(await queue.move("a", { delay: 0 }), true);
    for (const [id, value, options] of [["b", "first", { kind: "list" }], ["c", { n: 2 }, { kind: "list" }],
        ["d", "left", { kind: "list left" }]]) {
        assert.equal(await queue.send(line, id, value, options), id);
        while (await queue.get(id)) await new Promise(setImmediate); // The list has it in this order.
    }
    while (await queue.count() > 0) await new Promise(setImmediate);
    const [[, fields]] = await client.sendCommand(["XRANGE", stream, "-", "+"]);
    const { "tw.id": id, order, who, to } = Object.fromEntries(fields.map((name, i) => [name, fields[i + 1]]));
    assert.deepEqual([id, order, who, to], ["a", "42", "ann", '["b"]']);
    assert.deepEqual(await client.lRange(line, 0, -1), ["left", "first", '{"n":2}']);
    const words = queue.sendWords(line, null, "x", { kind: "list left", delay: 5, keepDue: true });
    assert.deepEqual(words, ["TW.SEND", queue.key, line, "*", "IN", "5", "KEEPDUE", "LIST", "LEFT", "PAYLOAD", "x"]);
});

test("waiting tasks in their order, page by page", async () => {
    const queue = fresh(), at = (ms) => new Date(YEAR_2100.getTime() + ms), id = Buffer.from([254]);
    for (const [name, ms] of [["d", 1], ["a", 0], [id, 0], ["c", 1]]) await queue.put(name, "x", { at: at(ms) });
    await queue.put("ready", "x");
    const rows = [["a", 0], ["\ufffd", 0], ["d", 1], ["c", 1]].map(([name, ms]) =>
        ({ id: name, due: at(ms), next: at(ms) }));
    for (const count of [1, 2, 3, 10000]) {
        assert.deepEqual(await list(queue.range({ count })), rows);
        assert.deepEqual(await list(queue.range({ last: at(0), count })), rows.slice(0, 2));
        assert.deepEqual(await list(queue.range({ first: at(1).getTime(), count })), rows.slice(2));
    }
    assert.deepEqual(await list(queue.range({ first: at(2) })), []);
});

test("a forecast, and the counts of a queue", async () => {
    const queue = fresh();
    assert.deepEqual([await queue.stats(), await queue.forecast()], [null, Array(60).fill(0)]);
    for (const [id, delay] of [["a", 500], ["b", 1500], ["c", 1700], ["d", 99999]])
        await queue.put(id, "x", { delay: 1000 * delay });
    assert.deepEqual(await queue.forecast({ step: 1000000, steps: 3 }), [1, 2, 0]);
    await queue.cancel("a", "b", "c", "d");
    await kill(queue, ["dead"]);
    await queue.put("waiting", "x", { at: YEAR_2100 });
    await queue.pause();
    const { bytes, oldestReady, ...stats } = await queue.stats();
    assert.ok(bytes > 0 && oldestReady === 0);
    assert.deepEqual(stats, { tasks: 1, waiting: 1, ready: 0, leased: 0, dead: 1, paused: true, next: YEAR_2100,
        late: 0, held: 0, routes: 2, taken: 1, done: 0, failed: 1, lapsed: 0, back: 0, died: 1, dropped: 0, skipped: 0,
        coalesced: 0, delivered: 0, replaced: 0 });
});

test("a pause and a promotion", async () => {
    const queue = fresh();
    assert.deepEqual([await queue.resume(), await queue.pause()], [false, true]);
    assert.deepEqual([await queue.pause(), await queue.resume()], [false, true]);
    for (const id of ["a", "b", "c"]) await queue.put(id, "x", { delay: FAR });
    assert.deepEqual([await queue.promote("a"), await queue.promote("a")], [true, false]);
    assert.deepEqual([await queue.promoteAll(), await queue.promoteAll()], [2, 0]);
    assert.equal((await queue.get("a")).state, "ready");
});

test("lapses, and a task that stands behind an attempt", async () => {
    const queue = fresh(), words = ["TW.TAKE", "1", queue.key, "BLOCK", "60000", "LEASE"];
    const take = (lease) => client.sendCommand([...words, lease]);
    await queue.put("a", "x", { backoff: { first: 1, factor: 1, max: 1 } });
    await take("1");
    const [[key, id, token]] = await take("60000");
    assert.deepEqual([(await queue.get("a")).lapses, (await queue.get("a")).replaced], [1, false]);
    await queue.put("a", "y");
    assert.deepEqual([(await queue.get("a")).state, (await queue.get("a")).replaced], ["leased", true]);
    await client.sendCommand(["TW.ACK", key, id, token]);
    assert.equal((await queue.get("a")).replaced, false);
});

test("dead tasks", async () => {
    const queue = fresh(), begin = Date.now();
    await kill(queue, ["a", "b", "c"]);
    const [first, ...rest] = await queue.dead();
    assert.ok(first.dead.getTime() >= begin && first.due.getTime() >= begin);
    assert.deepEqual([first.id, first.attempt, first.error, first.lapses], ["a", 1, "no a", 0]);
    assert.deepEqual(rest.map((one) => one.id), ["b", "c"]);
    assert.deepEqual((await queue.dead({ count: 1, after: "a" })).map((one) => one.id), ["b"]);
    assert.equal((await queue.get("a")).state, "dead");
    assert.equal(await queue.replay(new Uint8Array([97]), { delay: FAR }), true);
    assert.equal(await queue.replay("a"), false);
    assert.equal(await queue.purge("b"), true);
    assert.equal(await queue.purge("b"), false);
    assert.equal(await queue.replayAll({ at: YEAR_2100 }), 1);
    assert.deepEqual((await queue.get("c")).due, YEAR_2100);
    assert.equal(await queue.purgeAll(), 0);
});

const REPLAYED = [1, 1000, 1001, 2000]; // The first ones and the last ones of pages.

test("all dead tasks, page by page, while some of them are replayed", async () => {
    const queue = fresh();
    await client.eval("for i = 1, 10500 do redis.call('TW.PUT', KEYS[1], i, 'IN', 0, 'PAYLOAD', 'x') end",
        { keys: [queue.key] });
    while (await queue.count() > 0) {
        const words = ["TW.TAKE", "1", queue.key, "LEASE", "600000", "COUNT", "1000", "BLOCK", "60000"];
        const rows = await client.sendCommand(words);
        await Promise.all(rows.map(([key, id, token]) =>
            client.sendCommand(["TW.NACK", key, id, token, "DEAD"])));
    }
    const ids = (await list(queue.allDead())).map((one) => Number(one.id)).sort((a, b) => a - b);
    assert.deepEqual(ids, Array.from({ length: 10500 }, (_, i) => i + 1));
    const seen = [];
    for await (const one of queue.allDead()) {
        seen.push(Number(one.id));
        if (REPLAYED.includes(seen.length)) await queue.replay(one.id, { delay: FAR });
    }
    assert.deepEqual(seen.sort((a, b) => a - b), ids);
    assert.equal(await queue.count(), REPLAYED.length);
    assert.equal(await queue.purgeAll(), 10500 - REPLAYED.length); // in two calls
    assert.deepEqual(await list(queue.allDead()), []);
});

test("the server's errors are those of the client", async () => {
    const queue = fresh();
    await client.set(queue.key, "a string");
    await assert.rejects(queue.count(), /^NotAQueue: WRONGTYPE/);
    await assert.rejects(list(queue.allDead()), /^NotAQueue: WRONGTYPE/);
    await assert.rejects(queue.stats(), (error) => error instanceof NotAQueue && /^WRONGTYPE/.test(error.cause.message));
    const other = fresh();
    await kill(other, ["a"]);
    await assert.rejects(other.move("a", { delay: 0 }), /^TaskIsDead: the task is dead: expected a replay/);
    await assert.rejects(other.dead({ after: "b" }), /^WrongArgument: AFTER is 'b'/);
});

test("hash slots are those of a cluster", () => {
    const keys = { 123456789: 12739, foo: 12182, "x{foo}y{bar}": 12182, "{}foo": 9500, "": 0 };
    for (const [key, slot] of Object.entries(keys)) assert.equal(slotOf(key), slot, key);
});

// Wrong arguments: the error names the value and the range, and nothing is sent.

const silent = { sendCommand() {
    throw new Error("it was sent");
} };
const none = new Queue(silent, "s");
const HUGE = 253402300800000;

const WRONG = [
    [TypeError, "delay is '5': expected an integer from 0 to 253402300799999",
        () => none.put("a", "x", { delay: "5" })],
    [RangeError, "delay is -1: expected an integer from 0 to", () => none.put("a", "x", { delay: -1 })],
    [RangeError, "delay is 0.5: expected an integer", () => none.put("a", "x", { delay: 0.5 })],
    [RangeError, "delay is NaN: expected an integer", () => none.put("a", "x", { delay: NaN })],
    [RangeError, `delay is ${HUGE}: expected an integer`, () => none.put("a", "x", { delay: HUGE })],
    [TypeError, "at is '2030': expected a Date, or Unix time in ms", () => none.put("a", "x", { at: "2030" })],
    [RangeError, "at is Invalid Date: expected a valid Date",
        () => none.put("a", "x", { at: new Date("soon") })],
    [RangeError, "expected a valid Date from 1970 to 9999", () => none.move("a", { at: new Date(-1) })],
    [RangeError, "expected a valid Date from 1970 to 9999", () => none.move("a", { at: new Date(HUGE) })],
    [TypeError, "delay and at are both given", () => none.put("a", "x", { delay: 1, at: 1 })],
    [TypeError, "there is no option 'dealy': expected delay, at, condition",
        () => none.put("a", "x", { dealy: 1 })],
    [TypeError, "the options are 5: expected an object", () => none.put("a", "x", 5)],
    [TypeError, "the options are null: expected an object", () => none.put("a", "x", null)],
    [RangeError, "condition is 'NX': expected 'nx' or 'xx' or 'gt' or 'lt'",
        () => none.put("a", "x", { condition: "NX" })],
    [RangeError, "condition is 'gt': expected 'nx' or 'xx'",
        () => none.put("a", "x", { condition: "gt", keepDue: true })],
    [TypeError, "keepDue is 1: expected true or false", () => none.put("a", "x", { keepDue: 1 })],
    [RangeError, "every is 0: expected an integer from 1", () => none.put("a", "x", { every: 0 })],
    [RangeError, "every is 3155760000001: expected an integer from 1 to 3155760000000",
        () => none.put("a", "x", { every: 3155760000001 })],
    [TypeError, "times is 3, and every is missing", () => none.put("a", "x", { times: 3 })],
    [RangeError, "times is 0: expected an integer from 1", () => none.put("a", "x", { every: 1, times: 0 })],
    [RangeError, "missed is 'never': expected 'burst' or 'skip' or 'coalesce'",
        () => none.put("a", "x", { missed: "never" })],
    [RangeError, "maxLate is -1: expected an integer", () => none.put("a", "x", { maxLate: -1 })],
    [RangeError, "tries is 1000001: expected an integer from 1 to 1000000",
        () => none.put("a", "x", { tries: 1000001 })],
    [TypeError, "backoff.first is undefined", () => none.put("a", "x", { backoff: { factor: 2, max: 9 } })],
    [RangeError, "backoff.factor is 0.5: expected a number from 1 to 100",
        () => none.put("a", "x", { backoff: { first: 1, factor: 0.5, max: 9 } })],
    [RangeError, "backoff.factor is 1.125: expected a number from 1 to 100 with at most two decimal places",
        () => none.put("a", "x", { backoff: { first: 1, factor: 1.125, max: 9 } })],
    [RangeError, "backoff.jitter is 101: expected an integer from 0 to 100",
        () => none.put("a", "x", { backoff: { first: 1, factor: 2, max: 9, jitter: 101 } })],
    [TypeError, "payload is Map(0) {}: expected a string, a Buffer, Values, or a value of JSON",
        () => none.put("a", new Map())],
    [TypeError, "payload is undefined: expected a string", () => none.put("a")],
    [TypeError, "payload is NaN: expected a string", () => none.put("a", NaN)],
    [TypeError, "payload[1] is 42n: expected a string", () => none.put("a", new Values("x", 42n))],
    [TypeError, "payload is [ 42n ]: expected a string", () => none.put("a", [42n])],
    [RangeError, "there is no value: expected one or more", async () => new Values()],
    [TypeError, "id is 42: expected a string", () => none.put(42, "x")],
    [RangeError, "id is '*', for which the server makes another one: expected null", () => none.put("*", "x")],
    [RangeError, "there is no id: expected one or more", () => none.cancel()],
    [TypeError, "id is undefined: expected a string", () => none.cancel(undefined)],
    [TypeError, "neither delay nor at is given", () => none.move("a", {})],
    [RangeError, "condition is 'nx': expected 'gt' or 'lt'",
        () => none.move("a", { delay: 1, condition: "nx" })],
    [TypeError, "id is undefined: expected a string", () => none.get()],
    [RangeError, "count is 10001: expected an integer from 1 to 10000", () => none.dead({ count: 10001 })],
    [TypeError, "payload is 'x': expected an object of fields and values, or a Map, as a Stream has",
        () => none.send("t", "a", "x")],
    [TypeError, "payload is {}: expected an object of fields", () => none.send("t", "a", {})],
    [TypeError, "payload is [ 1 ]: expected an object of fields", () => none.send("t", "a", [1])],
    [TypeError, "a field is 5: expected a string", () => none.send("t", "a", new Map([[5, "x"]]))],
    [TypeError, "payload is NaN: expected a string", () => none.send("t", "a", { x: NaN })],
    [TypeError, "target is 5: expected a string", () => none.send(5, "a", { x: 1 })],
    [RangeError, "kind is 'LIST': expected 'stream' or 'list' or 'list left'",
        () => none.send("t", "a", "x", { kind: "LIST" })],
    [RangeError, "tries is 16: expected an integer from 1 to 15", () => none.send("t", "a", { x: 1 }, { tries: 16 })],
    [RangeError, "maxlen is 0: expected an integer from 1", () => none.send("t", "a", { x: 1 }, { maxlen: 0 })],
    [TypeError, "there is no option 'kind': expected delay, at", () => none.put("a", "x", { kind: "list" })],
    [RangeError, "step is 0: expected an integer from 1 to 3155760000000", () => none.forecast({ step: 0 })],
    [RangeError, "steps is 10001: expected an integer from 1 to 10000", () => none.forecast({ steps: 10001 })],
    [RangeError, "first is -1: expected an integer from 0", () => none.range({ first: -1 }).next()],
    [RangeError, "count is 0: expected an integer from 1 to 10000", () => none.range({ count: 0 }).next()],
    [TypeError, "there is no option 'from': expected first, last, count", () => none.range({ from: 1 }).next()],
    [TypeError, "id is null: expected a string", () => none.promote(null)],
    [TypeError, "id is null: expected a string", () => none.purge(null)],
    [TypeError, "id is null: expected a string", () => none.replay(null)],
    [TypeError, "there is no option 'condition': expected delay, at",
        () => none.replay("a", { condition: "gt" })],
    [TypeError, "the client is undefined: expected a client of npm's redis",
        async () => new Queue(undefined, "s")],
    [TypeError, "the client has legacyMode",
        async () => new Queue({ ...silent, options: { legacyMode: true } }, "s")],
    [TypeError, "key is undefined: expected a string", async () => new Queue(silent)],
    [TypeError, "buffers is 1: expected true or false", async () => new Queue(silent, "s", { buffers: 1 })],
];

for (const [type, message, call] of WRONG) {
    test(`${type.name}: ${message}`, () => assert.rejects(call, (error) => {
        assert.ok(error instanceof type && error.message.includes(message), `${error.name}: ${error.message}`);
        return true;
    }));
}
