// SPDX-License-Identifier: MIT
"use strict";

/** A promise that is made when somebody asks for it, and made anew after it has failed or was dropped. */
class Kept {
    #make;
    #promise = null;

    constructor(make) {
        this.#make = make;
    }

    /** Returns the promise. */
    get() {
        if (!this.#promise) {
            const made = this.#make();
            this.#promise = made;
            made.catch(() => {
                if (this.#promise === made) this.#promise = null;
            });
        }
        return this.#promise;
    }

    /** Returns the promise, or null if none is kept, and keeps it no longer. */
    drop() {
        const promise = this.#promise;
        this.#promise = null;
        return promise;
    }
}

module.exports = { Kept };
