// SPDX-License-Identifier: MIT
// Waits that can be ended, and the waits between repetitions.
"use strict";

const FIRST_MS = 100, LONGEST_MS = 5000, SHORTEST_MS = 10;

/** Returns Unix time in ms, rounded up, so that nothing is early: Node tells whole milliseconds alone. */
function roundedUp() {
    return Date.now() + 1;
}

/** Waits for `ms`, or until `signal` is aborted. It never fails. */
function sleep(ms, signal) {
    return new Promise((resolve) => {
        if (signal.aborted) {
            resolve();
            return;
        }
        const end = () => {
            clearTimeout(timer);
            signal.removeEventListener("abort", end);
            resolve();
        };
        const timer = setTimeout(end, ms);
        signal.addEventListener("abort", end);
    });
}

/** Returns the result of `promise`, or fails if it does not come within `ms`. */
async function within(promise, ms, doing) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(Object.assign(new Error(`${doing}: no reply within ${ms} ms`),
            { code: "ETIMEDOUT" })), ms);
    });
    promise.catch(() => {}); // It may fail after it is late.
    try {
        return await Promise.race([promise, late]);
    } finally {
        clearTimeout(timer);
    }
}

/** The waits between repetitions: each is twice as long as the one before, up to `longest` ms. At random each is
 * shorter by up to a half, so that many workers do not come back at the same moment. */
class Waits {
    #longest;
    #next;

    constructor(longest = LONGEST_MS) {
        this.#longest = longest;
        this.reset();
    }

    /** The waits for heartbeats and results. A lease that ended while the server was down begins anew, once: the
     * next repetition comes before its end. */
    static within(lease) {
        return new Waits(Math.max(SHORTEST_MS, Math.min(lease / 10, LONGEST_MS)));
    }

    reset() {
        this.#next = Math.min(FIRST_MS, this.#longest);
    }

    next() {
        const wait = this.#next;
        this.#next = Math.min(2 * wait, this.#longest);
        return Math.round(wait * (1 - Math.random() / 2));
    }
}

module.exports = { roundedUp, sleep, within, Waits };
