// SPDX-License-Identifier: MIT
"use strict";
const { shown } = require("./check");
const { fields, text, values } = require("./replies");

/** Has a payload: mostly of one value. */
class Carrier {
    #json; // undefined: not read yet

    /** The first value of the payload as text. */
    get text() {
        return text(this.payload[0]);
    }

    /** The first value, read as JSON once: the same object each time. Throws a SyntaxError if it is none. */
    get json() {
        if (this.#json === undefined) {
            try {
                this.#json = JSON.parse(this.text);
            } catch (error) {
                const begin = shown(this.text.slice(0, 40));
                throw new SyntaxError(`payload begins with ${begin}: expected JSON (${error.message})`,
                    { cause: error });
            }
        }
        return this.#json;
    }
}

/** A task, as TW.GET describes it. */
class Task extends Carrier {
    /** Returns an element of TW.GET's reply as a task; null if there is no such task. */
    static of(id, flat, buffers) {
        return flat === null ? null : new Task(id, fields(flat), buffers);
    }

    constructor(id, found, buffers) {
        super();
        Object.assign(this, {
            id: text(id),
            due: new Date(found.due),
            remaining: found.remaining,
            every: found.every,
            times: found.times,
            target: text(found.target),
            kind: text(found.kind),
            maxlen: found.maxlen,
            missed: found.missed === null ? null : text(found.missed),
            missedPeriods: found["missed-periods"],
            maxLate: found["max-late"],
            attempt: found.attempt,
            lapses: found.lapses,
            replaced: found.replaced === 1,
            state: text(found.state),
            next: found.next === null ? null : new Date(found.next),
            worker: text(found.worker),
            error: text(found.error),
            payload: values(found.payload, buffers),
        });
    }
}

module.exports = { Carrier, Task };
