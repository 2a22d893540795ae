// SPDX-License-Identifier: MIT
// The commands of the module that only look (docs/redis.md), as statements of a file, in the way of statements.js.
"use strict";
const check = require("./check");
const { FileError } = require("./errors");
const { forecast } = require("./forecast");
const { bytesOf, payloadOf, named } = require("./rows");

// `times` may be larger than a number of JavaScript, which a driver may refuse to read.
const TASK = `
    SELECT state, due_ms AS due, next_ms AS next, attempt, lapses, replaced, every_ms AS every,
        CAST(times AS TEXT) AS times, missed, missed_periods AS "missed-periods", max_late_ms AS "max-late",
        coalesce(worker, '') AS worker, coalesce(error, '') AS error, payload
    FROM tw_look WHERE queue = ? AND id = ?`;

// A page of dead tasks behind one: its revision may be larger than a number of JavaScript.
const DEAD = `
    SELECT id, due_ms AS due, dead_ms AS dead, attempt, coalesce(error, '') AS error, lapses FROM tw_task
    WHERE queue = ? AND dead_ms IS NOT NULL AND (dead_ms, revision) > (?, CAST(? AS INTEGER))
    ORDER BY dead_ms, revision LIMIT ?`;

/** A page of waiting tasks in their order, from a time and a revision on. `place` is the column of the order. */
const waiting = (place) => `
    SELECT id, due_ms AS due, next_ms AS next FROM tw_task INDEXED BY tw_order
    WHERE queue = ? AND dead_ms IS NULL AND replaced = 0 AND run = 0 AND place_ms <= ?
        AND next_ms BETWEEN ? AND ? AND (${place}, revision) > (?, CAST(? AS INTEGER))
    ORDER BY ${place}, revision LIMIT ?`;

// How many tasks are in each state, the first next time of them, and for how long one has been ready.
const LOAD = `
    SELECT state, count(*) AS tasks, min(next_ms) AS next, clock - min(place_ms) AS since FROM tw_look, tw_clock
    WHERE queue = ? GROUP BY state`;

/** Returns options of a command by their names. */
function given(words) {
    const found = {};
    for (let i = 0; i < words.length; i += 2) found[words[i]] = words[i + 1];
    return found;
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

/** Returns the time, and whether the clock was set back. Then a waiting task may have a place in the order that
 * lies behind its next time; else both are the same. */
function* moment() {
    const [{ now, back }] = yield ["SELECT clock AS now, clock_ms > clock AS back FROM tw_meta, tw_clock"];
    return [now, back === 1];
}

/** Returns the text of the revision of a task with this next time; "-1" if there is none. */
function* revisionOf(key, id, next) {
    const [row] = yield ["SELECT CAST(revision AS TEXT) AS revision FROM tw_task"
        + " WHERE queue = ? AND id = ? AND next_ms = ? AND dead_ms IS NULL", key, bytesOf(id), next];
    return row ? row.revision : "-1";
}

function* range(key, first, last, ...words) {
    const { AFTER, COUNT = 1000 } = given(words), [now, back] = yield* moment();
    const begin = Math.max(now + 1, first === "-" ? 0 : Number(first));
    const end = last === "+" ? check.MAX_MS : Number(last);
    const behind = AFTER === undefined ? "-1" : yield* revisionOf(key, AFTER, begin);
    const rows = yield [waiting(back ? "next_ms" : "place_ms"), key, back ? check.MAX_MS : end, begin, end, begin,
        behind, Number(COUNT)];
    return rows.map((row) => [bytesOf(row.id), row.due, row.next]);
}

function* next(key) {
    return (yield* range(key, "-", "+", "COUNT", 1))[0] || null;
}

function* forecastOf(key, ...words) {
    const { STEP = 1000, STEPS = 60 } = given(words), [now, back] = yield* moment();
    return yield* forecast(key, { now, step: Number(STEP), steps: Number(STEPS), back });
}

/** A file does not count events, and has no targets. Returns null if there is no such queue. */
function* info(key) {
    const paused = (yield ["SELECT 1 FROM tw_queue WHERE name = ? AND paused <> 0", key]).length;
    const found = Object.fromEntries((yield [LOAD, key]).map((row) => [row.state, row]));
    if (!paused && !Object.keys(found).length) return null;
    const tasks = (state) => (found[state] ? found[state].tasks : 0), { waiting: first, ready } = found;
    return ["tasks", tasks("waiting") + tasks("ready") + tasks("leased"),
        ...["waiting", "ready", "leased", "dead"].flatMap((state) => [state, tasks(state)]), "paused", paused,
        "next", first ? first.next : null, "oldest-ready", ready ? Math.max(0, ready.since) : 0];
}

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

const LOOKS = {
    "TW.GET": get, "TW.LEN": count, "TW.NEXT": next, "TW.RANGE": range, "TW.FORECAST": forecastOf, "TW.INFO": info,
    "TW.DEAD": dead,
};

module.exports = { LOOKS, dead };
