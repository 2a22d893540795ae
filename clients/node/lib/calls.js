// SPDX-License-Identifier: MIT
"use strict";
const check = require("./check");
const words = require("./words");
const { text, deadTask } = require("./replies");
const { Task } = require("./task");

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
        return reply === null ? null : { id: text(reply[0]), due: new Date(reply[1]), next: new Date(reply[2]) };
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
    .filter((name) => !["constructor", "key", "options", "deadRows"].includes(name));

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
