// SPDX-License-Identifier: MIT
"use strict";
const check = require("./check");
const words = require("./words");
const { text, row, stats, deadTask } = require("./replies");
const { Task } = require("./task");

const PAGE = 1000; // Waiting tasks in a reply, while they are listed.

/**
 * The calls of a queue. Each is a generator that yields commands, { command, looks }, gets their replies, and
 * returns its result. So Queue and SyncQueue share them.
 */
class Calls {
    #key;
    #buffers;

    constructor(key, options = {}) {
        const { buffers = false } = check.options(options, ["buffers"]);
        this.#key = check.bytes("key", key);
        this.#buffers = check.yesNo("buffers", buffers);
    }

    get key() {
        return this.#key;
    }

    get options() {
        return { buffers: this.#buffers };
    }

    * #write(command) {
        return yield { command, looks: false };
    }

    * #read(command) {
        return yield { command, looks: true };
    }

    // Tasks

    * put(id, payload, options = {}) {
        const reply = yield* this.#write(words.put(this.#key, id, payload, options));
        return reply === null ? null : text(reply);
    }

    * send(target, id, payload, options = {}) {
        const reply = yield* this.#write(words.send(this.#key, target, id, payload, options));
        return reply === null ? null : text(reply);
    }

    * cancel(...ids) {
        return yield* this.#write(words.cancel(this.#key, ids));
    }

    * move(id, options) {
        const reply = yield* this.#write(words.move(this.#key, id, options));
        return reply === null ? null : reply === 1;
    }

    * get(id) {
        const [found] = yield* this.#read(["TW.GET", this.#key, check.bytes("id", id)]);
        return Task.of(id, found, this.#buffers);
    }

    * count() {
        return yield* this.#read(["TW.LEN", this.#key]);
    }

    * next() {
        const reply = yield* this.#read(["TW.NEXT", this.#key]);
        return reply === null ? null : row(reply);
    }

    /** Returns a page of waiting tasks, and the options of the next page, if there is one. */
    * rangePage(options) {
        const { count = PAGE, last } = options;
        const raw = yield* this.#read(words.range(this.#key, { ...options, count })), rows = raw.map(row);
        if (rows.length < count) return { rows };
        return { rows, more: { first: rows[count - 1].next, last, count, after: raw[count - 1][0] } };
    }

    * forecast(options = {}) {
        const { step = 1000, steps = 60 } = check.options(options, ["step", "steps"]);
        return yield* this.#read(words.forecast(this.#key, { step, steps }));
    }

    * stats() {
        try {
            return stats(yield* this.#read(["TW.INFO", this.#key]));
        } catch (error) {
            if (!error.message.endsWith("no such key")) throw error;
            return null;
        }
    }

    * promote(id) {
        check.bytes("id", id);
        return (yield* this.#write(words.promote(this.#key, id))) === 1;
    }

    * promoteAll() {
        return yield* this.#write(words.promote(this.#key, null));
    }

    * pause() {
        return (yield* this.#write(["TW.PAUSE", this.#key])) === 1;
    }

    * resume() {
        return (yield* this.#write(["TW.RESUME", this.#key])) === 1;
    }

    // Dead tasks

    * dead(options = {}) {
        const { count = 100, after } = check.options(options, ["count", "after"]);
        return (yield* this.deadRows(count, after)).map(deadTask);
    }

    * deadRows(count, after) {
        return yield* this.#read(words.dead(this.#key, { count, after }));
    }

    * replay(id, options = {}) {
        check.bytes("id", id);
        return (yield* this.#write(words.replay(this.#key, id, options))) === 1;
    }

    * replayAll(options = {}) {
        return yield* this.#untilFew(words.replay(this.#key, null, options));
    }

    * purge(id) {
        check.bytes("id", id);
        return (yield* this.#write(words.purge(this.#key, id))) === 1;
    }

    * purgeAll() {
        return yield* this.#untilFew(words.purge(this.#key, null));
    }

    * #untilFew(command) {
        let all = 0, some;
        do {
            some = yield* this.#write(command);
            all += some;
        } while (some === check.MANY);
        return all;
    }
}

/** The names of the calls that programs make. */
const NAMES = Object.getOwnPropertyNames(Calls.prototype)
    .filter((name) => !["constructor", "key", "options", "deadRows", "rangePage"].includes(name));

/** Gives a class a method for each call, which hands the generator of the call to `run(queue, work)`. */
function addCalls(type, callsOf, run) {
    for (const name of NAMES) {
        const value = function call(...args) {
            return run(this, callsOf(this)[name](...args));
        };
        Object.defineProperty(type.prototype, name, { value, writable: true, configurable: true });
    }
}

module.exports = { Calls, addCalls };
