// SPDX-License-Identifier: MIT
"use strict";
const check = require("./check");
const words = require("./words");
const { RAW, kindOf, text, task, deadTask } = require("./replies");

const PAGE = 1000; // Dead tasks in a reply, while all of them are listed.

/** Sends words to the server that has the key: a client, a pool, a Sentinel client or a cluster. */
function send(client, key, readOnly, command) {
    if (isCluster(client)) return client.sendCommand(key, readOnly, command, RAW);
    if (isSentinel(client)) return client.sendCommand(readOnly, command, RAW);
    return client.sendCommand(command, RAW);
}

function isCluster(client) { // node-redis 4.5 has the first method, later versions have the second.
    return typeof client.getSlotMaster === "function" || typeof client.nodeClient === "function";
}

function isSentinel(client) {
    return typeof client.getSentinelNode === "function";
}

/** Throws a TypeError unless `client` can send commands as this package sends them. */
function checkClient(client) {
    if (client === null || typeof client !== "object" || typeof client.sendCommand !== "function") {
        throw new TypeError(`the client is ${check.shown(client)}: expected a client of npm's redis`);
    }
    if (client.options && client.options.legacyMode) {
        throw new TypeError("the client has legacyMode: expected client.duplicate({ legacyMode: false })");
    }
    return client;
}

/** Tasks for workers under one key. Methods may be called at the same time, and in any order. */
class Queue {
    #client;
    #buffers;

    constructor(client, key, options = {}) {
        const { buffers = false } = check.options(options, ["buffers"]);
        this.#client = checkClient(client);
        this.key = check.bytes("key", key);
        this.#buffers = check.yesNo("buffers", buffers);
    }

    #write(command) {
        return send(this.#client, this.key, false, command);
    }

    #read(command) {
        return send(this.#client, this.key, true, command);
    }

    // For a transaction: the words alone

    putWords(id, payload, options = {}) {
        return words.put(this.key, id, payload, options);
    }

    cancelWords(...ids) {
        return words.cancel(this.key, ids);
    }

    moveWords(id, options) {
        return words.move(this.key, id, options);
    }

    // Tasks

    async put(id, payload, options = {}) {
        const reply = await this.#write(this.putWords(id, payload, options));
        return reply === null ? null : text(reply);
    }

    async cancel(...ids) {
        return this.#write(this.cancelWords(...ids));
    }

    async move(id, options) {
        const reply = await this.#write(this.moveWords(id, options));
        return reply === null ? null : reply === 1;
    }

    async get(id) {
        const [found] = await this.#read(["TW.GET", this.key, check.bytes("id", id)]);
        return task(id, found, this.#buffers);
    }

    async count() {
        return this.#read(["TW.LEN", this.key]);
    }

    async next() {
        const reply = await this.#read(["TW.NEXT", this.key]);
        return reply === null ? null : { id: text(reply[0]), due: new Date(reply[1]), next: new Date(reply[2]) };
    }

    async promote(id) {
        check.bytes("id", id);
        return await this.#write(words.promote(this.key, id)) === 1;
    }

    async promoteAll() {
        return this.#write(words.promote(this.key, null));
    }

    async pause() {
        return await this.#write(["TW.PAUSE", this.key]) === 1;
    }

    async resume() {
        return await this.#write(["TW.RESUME", this.key]) === 1;
    }

    // Dead tasks

    async dead(options = {}) {
        const { count = 100, after } = check.options(options, ["count", "after"]);
        return (await this.#deadRows(count, after)).map(deadTask);
    }

    #deadRows(count, after) {
        return this.#read(words.dead(this.key, { count, after }));
    }

    /**
     * Yields all dead tasks, the first death first. The caller may replay or purge tasks meanwhile: then the
     * last task of a page is gone, and the list is read anew from its head, without the tasks that were
     * yielded.
     */
    async* allDead() {
        let last; // the id of the last row, as bytes
        let died = -1, seen = new Set(); // the time of the last death, and the tasks that died then
        for (;;) {
            const rows = await this.#deadRows(PAGE, last).catch((error) => {
                if (last === undefined || kindOf(error) !== "ERR") throw error;
                return null;
            });
            if (rows === null) {
                last = undefined;
                continue;
            }
            for (const row of rows) {
                const id = row[0].toString("latin1"); // One string for each sequence of bytes.
                last = row[0];
                if (row[2] < died || (row[2] === died && seen.has(id))) continue;
                if (row[2] > died) [died, seen] = [row[2], new Set()];
                seen.add(id);
                yield deadTask(row);
            }
            if (rows.length < PAGE) return;
        }
    }

    async replay(id, options = {}) {
        check.bytes("id", id);
        return await this.#write(words.replay(this.key, id, options)) === 1;
    }

    async replayAll(options = {}) {
        return this.#untilFew(words.replay(this.key, null, options));
    }

    async purge(id) {
        check.bytes("id", id);
        return await this.#write(words.purge(this.key, id)) === 1;
    }

    async purgeAll() {
        return this.#untilFew(words.purge(this.key, null));
    }

    async #untilFew(command) {
        let all = 0, some;
        do {
            some = await this.#write(command);
            all += some;
        } while (some === check.MANY);
        return all;
    }
}

module.exports = { Queue, checkClient, isCluster, isSentinel };
