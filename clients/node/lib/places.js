// SPDX-License-Identifier: MIT
"use strict";

const SHORTEST_BLOCK_MS = 100;
const TURNS_MS = 1000; // Each loop has a turn in about this time.

/**
 * The places for jobs at once, which `loops` share. A loop holds places before it takes tasks: no task waits in
 * the worker.
 */
class Places {
    #count;
    #loops;
    #free;
    #working = 0;
    #waiting = []; // the first that came is the first that is served
    #closed = false;

    constructor(count, loops = 1) {
        this.#count = this.#free = count;
        this.#loops = loops;
    }

    /**
     * Returns how many ms a loop may wait with its places, at most `longest`. It keeps them from the other loops
     * meanwhile. So where places may be short, the loops take turns.
     */
    block(longest) {
        const room = this.#count - this.#working, loops = this.#loops;
        if (loops === 1 || room >= 2 * loops || (this.#working === 0 && room >= loops)) return longest;
        const turn = Math.round(TURNS_MS * Math.min(1, room / loops));
        return Math.min(longest, Math.max(SHORTEST_BLOCK_MS, turn));
    }

    /** Waits until a place is free. Returns the number of places that the caller holds now, at most `most`; 0
     * after close(). */
    hold(most) {
        return new Promise((resolve) => {
            this.#waiting.push({ most, resolve });
            this.#serve();
        });
    }

    /** Some of the places that a loop holds have jobs now, and the others are free again. */
    begin(jobs, unused) {
        this.#working += jobs;
        this.#free += unused;
        this.#serve();
    }

    /** A job has ended. */
    end() {
        this.begin(-1, 1);
    }

    close() {
        this.#closed = true;
        this.#serve();
    }

    #serve() {
        while (this.#waiting.length && (this.#closed || this.#free > 0)) {
            const { most, resolve } = this.#waiting.shift();
            const count = this.#closed ? 0 : Math.min(most, this.#free);
            this.#free -= count;
            resolve(count);
        }
    }
}

module.exports = { Places };
