// SPDX-License-Identifier: MIT
// The commands of the module (docs/redis.md) as statements of a file (docs/store.md). Each command is a
// generator, for a driver, and returns the reply of the module. Numbers may be words, as the views take texts
// too.
"use strict";
const { randomBytes } = require("crypto");
const time = require("./time");
const check = require("./check");
const { FileError } = require("./errors");
const { LOOKS, dead } = require("./looks");
const { bytesOf, payloadOf, named } = require("./rows");

const FORMAT = 1; // of the tables
const MOST = 1000; // tasks of a take
const OPTIONS = { EVERY: "every_ms", TIMES: "times", MAXLATE: "max_late_ms", TRIES: "tries", JITTER: "jitter" };
const CONDITIONS = ["NX", "XX", "GT", "LT", "KEEPDUE"];

// A lease that has run out ends at the next call for its task.
const OVER = "coalesce(lease_end_ms <= (SELECT clock FROM tw_clock), 0)";

// The next time at which a take may find something: also the end of a lease.
const PLACE = `
    SELECT min(place_ms) AS place FROM tw_task INDEXED BY tw_order WHERE queue = ? AND dead_ms IS NULL AND run = 0
        AND NOT EXISTS (SELECT 1 FROM tw_queue WHERE name = queue AND paused <> 0)
        AND NOT EXISTS (SELECT 1 FROM tw_meta WHERE restored & 1)`;

// Whether a take that has just looked into a queue goes on there.
const MORE = `
    SELECT 1 FROM tw_task INDEXED BY tw_order, tw_clock WHERE queue = ? AND dead_ms IS NULL AND replaced = 0
        AND run = 0 AND place_ms <= clock
        AND NOT EXISTS (SELECT 1 FROM tw_queue WHERE name = queue AND paused <> 0) LIMIT 1`;

// The tasks that a promote of all may change.
const WAITING = `
    SELECT id FROM tw_look WHERE queue = ? AND dead_ms IS NULL AND (state = 'waiting' OR ${OVER})
    ORDER BY place_ms, revision LIMIT ?`;

const PROMOTE = "INSERT INTO tw_promote(queue, id) VALUES (?, ?) RETURNING id";
const REPLAY = "INSERT INTO tw_replay(due_ms, queue, id) VALUES (?, ?, ?) RETURNING id";
const PURGE = `
    INSERT INTO tw_cancel(queue, id)
    SELECT queue, id FROM tw_task WHERE queue = ? AND id = ? AND dead_ms IS NOT NULL RETURNING id`;

const NO_TABLES = "the file has no tables of Tickwheel: connect('sqlite:///FILE') makes them, or `tickwheel put " +
    "--store FILE </dev/null`";

const NO_TARGETS = "TW.SEND: a file has no targets: put a task for workers, or send this one in a server with " +
    "the module";

// It takes the lock to write, and changes nothing.
const LOCK = "UPDATE tw_meta SET format = format WHERE 0";

/** Returns the time of IN or AT. The present is rounded up, so that nothing is early, but a task for now is
 * ready at once. */
function timeOf(word, ms) {
    if (word === "AT") return Number(ms);
    return Number(ms) ? time.roundedUp() + Number(ms) : Date.now();
}

function* insert(view, row) {
    const marks = Object.keys(row).fill("?").join(", ");
    const sql = `INSERT INTO ${view}(${Object.keys(row).join(", ")}) VALUES (${marks}) RETURNING id`;
    return (yield [sql, ...Object.values(row)]).length === 1;
}

/** Does a statement for each of these ids. Returns how many tasks it has changed. */
function* each(sql, ids, ...first) {
    let changed = 0;
    for (const id of ids) changed += (yield [sql, ...first, id]).length;
    return changed;
}

// Tasks

function payloadIn(values) {
    if (values.length === 1) return values[0];
    throw new RangeError(`payload has ${values.length} values: expected one, as this home is a file`);
}

/** Returns the row of tw_put for the words behind the id. */
function optionsOf(words) {
    const row = {}, conditions = [], rest = [...words];
    while (rest.length) {
        const word = rest.shift();
        if (word === "IN" || word === "AT") row.due_ms = timeOf(word, rest.shift());
        else if (CONDITIONS.includes(word)) conditions.push(word);
        else if (word === "MISSED") row.missed = rest.shift().toLowerCase();
        else if (word === "BACKOFF") [row.backoff_ms, row.factor, row.backoff_max_ms] = rest.splice(0, 3);
        else if (word === "PAYLOAD") row.payload = payloadIn(rest.splice(0));
        else row[OPTIONS[word]] = rest.shift();
    }
    return conditions.length ? { ...row, condition: conditions.sort().join(" ") } : row;
}

function* put(key, id, ...words) {
    const name = id === "*" ? Buffer.from(randomBytes(8).toString("hex")) : bytesOf(id);
    return (yield* insert("tw_put", { queue: key, id: name, ...optionsOf(words) })) ? name : null;
}

function* cancel(key, ...ids) {
    const found = [];
    for (const id of ids.map(bytesOf)) {
        const [row] = yield [`SELECT state = 'leased' AND NOT ${OVER} AS held FROM tw_look
            WHERE queue = ? AND id = ?`, key, id];
        yield ["INSERT INTO tw_cancel(queue, id) VALUES (?, ?)", key, id];
        found.push(row ? 1 + row.held : 0);
    }
    return found;
}

function* move(key, id, word, ms, condition = null) {
    const name = named(id);
    if (!(yield ["SELECT 1 FROM tw_task WHERE queue = ? AND id = ?", key, name]).length) return null;
    const row = { queue: key, id: name, due_ms: timeOf(word, ms), condition };
    return (yield* insert("tw_move", row)) ? 1 : 0;
}

/** Promotes a task, `IDS 1 id`, or a page of them, `ALL`, and returns their number. If each task of the page
 * dies, of a lease that has run out, it takes the next page: 0 says that no task waits. */
function* promote(key, how, _, id) {
    if (how === "IDS") return yield* each(PROMOTE, [bytesOf(id)], key);
    for (;;) {
        const rows = yield [WAITING, key, check.MANY];
        const promoted = yield* each(PROMOTE, rows.map((row) => row.id), key);
        if (promoted || rows.length < check.MANY) return promoted;
    }
}

function* setPaused(key, paused) {
    return (yield ["INSERT INTO tw_pause(queue, paused) VALUES (?, ?) RETURNING queue", key, paused]).length;
}

// Dead tasks

/** Does a statement for a dead task, `IDS 1 id`, or for a page of them, `ALL`. Returns their number. */
function* eachDead(sql, key, [how, , id], ...first) {
    const ids = how === "IDS" ? [named(id)] : (yield* dead(key, "COUNT", check.MANY)).map((row) => row[0]);
    return yield* each(sql, ids, ...first, key);
}

function* replay(key, ...words) {
    const [word, ms] = words.slice(words[0] === "ALL" ? 1 : 3);
    return yield* eachDead(REPLAY, key, words, word === undefined ? null : timeOf(word, ms));
}

function* purge(key, ...words) {
    return yield* eachDead(PURGE, key, words);
}

// Attempts

function* ack(key, id, token) {
    return (yield* insert("tw_ack", { queue: key, id, token })) ? 1 : 0;
}

function* touch(key, id, token, _, lease) {
    if (!(yield* insert("tw_touch", { queue: key, id, token, lease_ms: lease }))) return null;
    return (yield ["SELECT end_ms FROM tw_lease WHERE queue = ? AND id = ?", key, id])[0].end_ms;
}

/** Returns the time of the next attempt, 0 if the task, or its period, is dead now, and null if the token is no
 * good. */
function* nack(key, id, token, ...words) {
    const row = { queue: key, id, token, how: "failed" }, rest = [...words];
    while (rest.length) {
        const word = rest.shift();
        if (word === "BACK" || word === "DEAD") row.how = word.toLowerCase();
        else if (word === "ERROR") row.error = String(rest.shift());
        else if (word === "AT") row.next_ms = Number(rest.shift());
        else row.next_ms = (yield ["SELECT clock FROM tw_clock"])[0].clock + Number(rest.shift());
    }
    const [last] = yield [`SELECT replaced <= 0 AND (? = 'dead' OR attempt - lapses
        >= coalesce(tries, (SELECT m.tries FROM tw_meta m))) AS dies FROM tw_task WHERE queue = ? AND id = ?`,
        row.how, key, id];
    if (!(yield* insert("tw_nack", row))) return null;
    if (row.how !== "back" && last.dies) return 0;
    return (yield ["SELECT next_ms FROM tw_task WHERE queue = ? AND id = ?", key, id])[0].next_ms || 1;
}

/**
 * Takes tasks of these queues, those of the first one first, as takes of this random name. After an error the
 * same name finds the tasks that it has taken. A take that finds none may have passed over a thousand that were
 * too late: place() tells whether to go on. It takes nothing from the queues behind that one.
 */
function* take(name, keys, worker, lease, most) {
    const found = [];
    let goesOn = true;
    for (const [number, key] of keys.entries()) {
        const own = `${name} ${number}`, left = Math.min(Number(most), MOST) - found.length;
        if (left === 0) break;
        goesOn = goesOn && (number === 0 || !(yield [MORE, keys[number - 1]]).length);
        if (goesOn) {
            yield ["INSERT INTO tw_take(queue, take, worker, lease_ms, count) VALUES (?, ?, ?, ?, ?)", key, own,
                worker, lease, left];
        }
        found.push(...yield [`SELECT queue, id, token, due_ms AS due, attempt, payload, missed_periods AS missed
            FROM tw_taken WHERE take = ?`, own]);
    }
    return found.map((row) => [row.queue, bytesOf(row.id), row.token, row.due, row.attempt, payloadOf(row),
        row.missed]);
}

/** Returns the next time at which a take of these queues may find something. */
function* place(keys) {
    let first = Infinity;
    for (const key of keys) first = Math.min(first, (yield [PLACE, key])[0].place ?? Infinity);
    return first;
}

// Commands

const CHANGES = {
    "TW.PUT": put, "TW.CANCEL": cancel, "TW.MOVE": move, "TW.PROMOTE": promote, "TW.REPLAY": replay,
    "TW.PURGE": purge, "TW.ACK": ack, "TW.TOUCH": touch, "TW.NACK": nack,
    "TW.PAUSE": (key) => setPaused(key, 1), "TW.RESUME": (key) => setPaused(key, 0),
};
const COMMANDS = { ...LOOKS, ...CHANGES };

/** Returns { looks, work }: whether a command only looks, and a function that makes its generator. */
function command([name, key, ...words]) {
    if (name === "TW.SEND") throw new TypeError(NO_TARGETS);
    if (!Object.hasOwn(COMMANDS, name)) throw new Error(`${name}: a file has no such statement`);
    const queue = String(key);
    if (!bytesOf(key).equals(Buffer.from(queue))) {
        throw new RangeError(`key is ${check.shown(key)}: expected UTF-8, as this home is a file`);
    }
    return { looks: Object.hasOwn(LOOKS, name), work: () => COMMANDS[name](queue, ...words) };
}

// Transactions

/** Throws the contract's error for tables of another version. Those from before the first release had a row for
 * each name. */
function* checkFormat() {
    let rows;
    try {
        rows = yield ["SELECT format FROM tw_meta"];
    } catch (error) {
        if (!error.message.includes("no such column")) throw error;
        rows = yield ["SELECT 0 AS format FROM tw_meta WHERE name = 'version'"];
    }
    const format = rows.length ? rows[0].format : null;
    if (format === FORMAT) return;
    throw new FileError(`format is ${format}: expected ${FORMAT}; the version that wrote it can read it`,
        "TW_EFORMAT");
}

/** Rolls back after an error, by which SQLite may have rolled back already. */
function* undo(...statements) {
    try {
        for (const statement of statements) yield [statement];
    } catch (_) { // There is nothing left to undo.
    }
}

/**
 * Does work in a transaction of its own. Each one looks at the format of the tables: somebody may have restored
 * a backup of another one. A look does not wait for those who write. The file may have gone during the wait, so
 * `checkFile` comes behind it.
 */
function* transaction(looks, work, checkFile) {
    yield [looks ? "BEGIN" : "BEGIN IMMEDIATE"];
    try {
        yield* checkFormat();
        checkFile();
        const result = yield* work;
        yield ["COMMIT"];
        return result;
    } catch (error) {
        yield* undo("ROLLBACK");
        throw error;
    }
}

/** Does work whole, or not at all, in the transaction that is open on a connection of the caller. If none is,
 * it is a transaction of its own. */
function* savepoint(looks, work) {
    yield ["SAVEPOINT tw_call"];
    try {
        if (!looks) yield [LOCK]; // Who has read and writes then may find that another one has written.
        yield* checkFormat();
        const result = yield* work;
        yield ["RELEASE tw_call"];
        return result;
    } catch (error) {
        yield* undo("ROLLBACK TO tw_call", "RELEASE tw_call");
        if (error.message !== "no such table: tw_meta") throw error;
        throw new FileError(NO_TABLES, undefined, { cause: error });
    }
}

/** Does a command as part of the transaction that a caller has begun. Without one, the command would be done alone:
 * then it throws an error. */
function* inTransaction(words) {
    if (!(yield* isOpen())) {
        throw new FileError("no transaction is open on db: expected BEGIN IMMEDIATE before job.ackOn(db)");
    }
    const { looks, work } = command(words);
    return yield* savepoint(looks, work());
}

function* isOpen() {
    try {
        yield ["BEGIN"];
    } catch (error) {
        if (!error.message.includes("within a transaction")) throw error;
        return true;
    }
    yield ["ROLLBACK"];
    return false;
}

/** Does a statement, and returns its first row. */
function* one(...statement) {
    return (yield statement)[0];
}

module.exports = { command, take, place, checkFormat, transaction, savepoint, inTransaction, one };
