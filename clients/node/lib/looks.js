// SPDX-License-Identifier: MIT
// The commands of the module that only look (docs/redis.md), as statements of a file, in the way of statements.js.
"use strict";
const { FileError } = require("./errors");
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

const LOOKS = { "TW.GET": get, "TW.LEN": count, "TW.NEXT": next, "TW.DEAD": dead };

module.exports = { LOOKS, dead };
