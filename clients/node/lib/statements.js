// SPDX-License-Identifier: MIT
// The commands of the module (docs/redis.md) as statements of a file (docs/store.md). Each command is a
// generator, for a driver, and returns the reply of the module. Numbers may be words, as the views take texts
// too.
"use strict";
const { randomBytes } = require("crypto");
const check = require("./check");
const { FileError } = require("./errors");

const FORMAT = 1; // of the tables
const MOST = 1000; // tasks of a take
const MOST_ID = 1024; // bytes of an id, in each verb but a put
const OPTIONS = { EVERY: "every_ms", TIMES: "times", MAXLATE: "max_late_ms", TRIES: "tries", JITTER: "jitter" };
const CONDITIONS = ["NX", "XX", "GT", "LT", "KEEPDUE"];
const NO_BYTES = Buffer.alloc(0);

// A lease that has run out ends at the next call for its task.
const OVER = "coalesce(lease_end_ms <= (SELECT clock FROM tw_clock), 0)";

// `times` may be larger than a number of JavaScript, which a driver may refuse to read.
const TASK = `
    SELECT state, due_ms AS due, next_ms AS next, attempt, lapses, replaced, every_ms AS every,
        CAST(times AS TEXT) AS times, missed, missed_periods AS "missed-periods", max_late_ms AS "max-late",
        coalesce(worker, '') AS worker, coalesce(error, '') AS error, payload
    FROM tw_look WHERE queue = ? AND id = ?`;

// The next time at which a take may find something: also the end of a lease.
const PLACE = `
    SELECT min(place_ms) AS place FROM tw_task INDEXED BY tw_order WHERE queue = ? AND dead_ms IS NULL AND run = 0
        AND NOT EXISTS (SELECT 1 FROM tw_queue WHERE name = queue AND paused <> 0)
        AND NOT EXISTS (SELECT 1 FROM tw_meta WHERE restored & 1)`;

// The tasks that a promote of all may change.
const WAITING = `
    SELECT id FROM tw_look WHERE queue = ? AND dead_ms IS NULL AND (state = 'waiting' OR ${OVER})
    ORDER BY place_ms, revision LIMIT ?`;

// A page of dead tasks behind one: its revision may be larger than a number of JavaScript.
const DEAD = `
    SELECT id, due_ms AS due, dead_ms AS dead, attempt, coalesce(error, '') AS error, lapses FROM tw_task
    WHERE queue = ? AND dead_ms IS NOT NULL AND (dead_ms, revision) > (?, CAST(? AS INTEGER))
    ORDER BY dead_ms, revision LIMIT ?`;

const PROMOTE = "INSERT INTO tw_promote(queue, id) VALUES (?, ?) RETURNING id";
const REPLAY = "INSERT INTO tw_replay(due_ms, queue, id) VALUES (?, ?, ?) RETURNING id";
const PURGE = `
    INSERT INTO tw_cancel(queue, id)
    SELECT queue, id FROM tw_task WHERE queue = ? AND id = ? AND dead_ms IS NOT NULL RETURNING id`;

const NO_TABLES = "the file has no tables of Tickwheel: connect('sqlite:///FILE') makes them, or `tickwheel put " +
    "--store FILE </dev/null`";

// It takes the lock to write, and changes nothing.
const LOCK = "UPDATE tw_meta SET format = format WHERE 0";

/** Some drivers have a Uint8Array. */
function bytesOf(value) {
    return Buffer.isBuffer(value) ? value : Buffer.from(value);
}

function payloadOf(row) {
    return [row.payload === null ? NO_BYTES : bytesOf(row.payload)];
}

/** Returns an id for statements that do not check it themselves. Throws the contract's error. */
function named(id) {
    const name = bytesOf(id);
    if (name.length >= 1 && name.length <= MOST_ID) return name;
    throw new FileError(`id has ${name.length} bytes: expected 1 to ${MOST_ID}`, "SQLITE_CONSTRAINT");
}

/** Returns the time of IN or AT. The present is rounded up, so that nothing is early, but a task for now is
 * ready at once. */
function timeOf(word, ms) {
    if (word === "AT") return Number(ms);
    return Number(ms) ? Date.now() + 1 + Number(ms) : Date.now();
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

function* getOne(key, id) {
    const [row] = yield [TASK, key, id];
    if (!row) return null;
    const times = row.times === null ? null : Number(row.times);
    const remaining = Math.max(0, (row.next || 0) - Date.now());
    return Object.entries({ ...row, times, payload: payloadOf(row), remaining, kind: "workers", target: "",
        maxlen: null }).flat();
}

function* get(key, ...ids) {
    const found = [];
    for (const id of ids.map(named)) found.push(yield* getOne(key, id));
    return found;
}

function* count(key) {
    const sql = "SELECT count(*) AS tasks FROM tw_task WHERE queue = ? AND dead_ms IS NULL";
    return (yield [sql, key])[0].tasks;
}

function* next(key) {
    const [row] = yield [`SELECT id, due_ms AS due, next_ms AS next FROM tw_task INDEXED BY tw_order
        WHERE queue = ? AND dead_ms IS NULL AND replaced = 0 AND run = 0
            AND next_ms > (SELECT clock FROM tw_clock) ORDER BY place_ms, revision LIMIT 1`, key];
    return row ? [bytesOf(row.id), row.due, row.next] : null;
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

function* dead(key, _, most, __, after) {
    let place = [-1, "-1"];
    if (after !== undefined) {
        const [row] = yield ["SELECT dead_ms, CAST(revision AS TEXT) AS revision FROM tw_task"
            + " WHERE queue = ? AND id = ? AND dead_ms IS NOT NULL", key, bytesOf(after)];
        if (!row) {
            throw new FileError(`AFTER is '${bytesOf(after)}': expected the id of a dead task`,
                "SQLITE_CONSTRAINT");
        }
        place = [row.dead_ms, row.revision];
    }
    const rows = yield [DEAD, key, ...place, Number(most)];
    return rows.map((row) => [bytesOf(row.id), row.due, row.dead, row.attempt, row.error, row.lapses, null]);
}

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
 * too late: place() tells whether to go on.
 */
function* take(name, keys, worker, lease, most) {
    const found = [];
    for (const [number, key] of keys.entries()) {
        const own = `${name} ${number}`, left = Math.min(Number(most), MOST) - found.length;
        if (left === 0) break;
        yield ["INSERT INTO tw_take(queue, take, worker, lease_ms, count) VALUES (?, ?, ?, ?, ?)", key, own,
            worker, lease, left];
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

const COMMANDS = {
    "TW.PUT": put, "TW.CANCEL": cancel, "TW.MOVE": move, "TW.GET": get, "TW.LEN": count, "TW.NEXT": next,
    "TW.PROMOTE": promote, "TW.DEAD": dead, "TW.REPLAY": replay, "TW.PURGE": purge, "TW.ACK": ack,
    "TW.TOUCH": touch, "TW.NACK": nack, "TW.PAUSE": (key) => setPaused(key, 1),
    "TW.RESUME": (key) => setPaused(key, 0),
};
const LOOKS = ["TW.GET", "TW.LEN", "TW.NEXT", "TW.DEAD"];

/** Returns { looks, work }: whether a command only looks, and a function that makes its generator. */
function command([name, key, ...words]) {
    if (!Object.hasOwn(COMMANDS, name)) throw new Error(`${name}: a file has no such statement`);
    const queue = String(key);
    if (!bytesOf(key).equals(Buffer.from(queue))) {
        throw new RangeError(`key is ${check.shown(key)}: expected UTF-8, as this home is a file`);
    }
    return { looks: LOOKS.includes(name), work: () => COMMANDS[name](queue, ...words) };
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

/** Does a statement, and returns its first row. */
function* one(...statement) {
    return (yield statement)[0];
}

module.exports = { command, take, place, checkFormat, transaction, savepoint, one };
