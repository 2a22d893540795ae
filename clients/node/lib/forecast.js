// SPDX-License-Identifier: MIT
// The forecast of a queue in a file: src/store/forecast.c, which explains it, in JavaScript.
"use strict";
const check = require("./check");

const waiting = (index) => `
    FROM tw_task INDEXED BY ${index} WHERE queue = ? AND dead_ms IS NULL AND replaced = 0 AND run = 0
        AND place_ms > ? AND place_ms <= ? AND next_ms > ? AND next_ms <= ?`;

// Each call that a task waits for. Some drivers bind each number as a REAL.
const FIRST = `
    SELECT (next_ms - 1 - CAST(? AS INTEGER)) / CAST(? AS INTEGER) AS step, count(*) AS calls
    ${waiting("tw_order")} GROUP BY 1`;

const REPEATS = `
    SELECT due_ms AS due, next_ms AS next, every_ms AS every, CAST(times AS TEXT) AS times, missed, attempt,
        missed_periods AS stands ${waiting("tw_repeat")} AND every_ms > 0`;

/** Returns the counts of the steps from now on. If the clock was set `back`, a task may have a place behind its
 * next time. */
function* forecast(queue, { now, step, steps, back }) {
    const end = Math.min(now + step * steps, check.MAX_MS), counts = Array(steps).fill(0);
    const values = [queue, now, back ? check.MAX_MS : end, now, end];
    for (const row of yield [FIRST, now, step, ...values]) counts[row.step] += row.calls;
    for (const task of yield [REPEATS, ...values]) addFurther({ now, step, end, counts }, task);
    return counts;
}

/** Counts the calls of a task after its first one. The periods that the first call will have missed are one call
 * with it, or one call each, or the next period is the first call. */
function addFurther(outlook, { due, next, every, times, missed, attempt, stands }) {
    const first = Math.floor((next - outlook.now - 1) / outlook.step);
    let last = due, begun = attempt > 0, further = times === "0" ? Infinity : Number(times) - 1;
    if (begun) { // A retry: the periods for which it stands are fixed.
        last += stands * every;
        if (further > 0 && last + every <= next) { // The next period has its call then too.
            [last, further, begun] = [last + every, further - 1, false];
            outlook.counts[first]++;
        }
    }
    const passed = missed === "burst" ? 0 : Math.floor(Math.max(0, next - last) / every);
    if (missed === "skip" && !begun && passed > 0) {
        outlook.counts[first]--;
        further++;
    }
    addCalls(outlook, { from: last + passed * every, every, next }, further);
}

/** Counts the calls behind that of the time `from`, at most so many, from the first call of the task on. */
function addCalls({ now, step, end, counts }, { from, every, next }, most) {
    let before = 0;
    for (let i = 0; i < counts.length; i++) {
        const to = Math.min(now + step * (i + 1), end);
        if (to < next) continue;
        const until = Math.min(Math.floor(Math.max(0, to - from) / every), most);
        counts[i] += until - before;
        before = until;
    }
}

module.exports = { forecast };
