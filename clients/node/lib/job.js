// SPDX-License-Identifier: MIT
"use strict";
const { NotYours, GivenUp } = require("./errors");
const { text, values } = require("./replies");
const { Carrier } = require("./task");

/** A task that this worker has taken: the argument of the handler. */
class Job extends Carrier {
    #controller = new AbortController();
    #acks;

    /** `row` is an element of TW.TAKE's reply. `acks` has functions that do the work of ackThen() and ackOn(). */
    constructor([queue, id, token, due, attempt, payload, missedPeriods], buffers, acks) {
        super();
        this.queue = text(queue);
        this.id = text(id);
        this.token = text(token);
        this.due = new Date(due);
        this.attempt = attempt;
        this.payload = values(payload, buffers);
        this.missedPeriods = missedPeriods;
        this.#acks = acks;
        // The names as bytes, for the commands that end the attempt.
        Object.defineProperty(this, "names", { value: [queue, id, token] });
    }

    /** Aborted when the task is not yours any more (the reason is a NotYours), when its time limit is over (a
     * TimeoutError), or when the worker ends before the handler has ended (a GivenUp). */
    get signal() {
        return this.#controller.signal;
    }

    get notYours() {
        return this.signal.reason instanceof NotYours;
    }

    get givenUp() {
        return this.signal.reason instanceof GivenUp;
    }

    /** Acknowledges the job and runs a script of Redis, in one step. Resolves to the script's reply. */
    async ackThen(script, keys = [], args = []) {
        return this.#acks.ackThen(script, keys, args);
    }

    /** Acknowledges the job in the transaction that is open on a connection of yours to the file of its queue. With
     * sqlite3 it returns a promise. */
    ackOn(db) {
        return this.#acks.ackOn(db);
    }

    /** Tells the handler to end. The first reason stays. */
    end(reason) {
        this.#controller.abort(reason);
    }
}

module.exports = { Job };
