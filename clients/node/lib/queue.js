// SPDX-License-Identifier: MIT
"use strict";
const { Calls, addCalls } = require("./calls");
const check = require("./check");
const drivers = require("./drivers");
const { WrongArgument } = require("./errors");
const { File, Within } = require("./file");
const { translated } = require("./refusals");
const { RAW, deadTask } = require("./replies");
const words = require("./words");

const PAGE = 1000; // Dead tasks in a reply, while all of them are listed.
const RANGE = ["first", "last", "count"]; // the options of range()

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

/** Returns the client for a queue, which a connection of sqlite3 may be too. */
function clientOf(client) {
    const driver = drivers.driverOf(client);
    if (driver === null) return checkClient(client);
    if (driver === "sqlite3") return new Within(client);
    throw new TypeError(`the client is a connection of ${driver}: expected new SyncQueue(connection, key), or ` +
        "queue.on(connection)");
}

/** Tasks for workers under one key. Methods may be called at the same time, and in any order. */
class Queue {
    #client;
    #calls;

    constructor(client, key, options = {}) {
        this.#calls = new Calls(key, options);
        this.#client = clientOf(client);
        this.key = this.#calls.key;
    }

    static {
        addCalls(this, (queue) => queue.#calls, (queue, work) => queue.#run(work));
    }

    async #run(work) {
        let step = work.next();
        while (!step.done) {
            const { command, looks } = step.value;
            let reply;
            try {
                reply = await send(this.#client, this.key, looks, command);
            } catch (error) {
                step = work.throw(translated(error));
                continue;
            }
            step = work.next(reply);
        }
        return step.value;
    }

    /** Returns the same queue through another client, or in a file through a connection of yours: a SyncQueue,
     * if its driver is one that waits. */
    on(client) {
        const driver = drivers.driverOf(client);
        if (driver !== null && this.#client instanceof File) this.#client.adopt(client);
        const isSync = driver !== null && driver !== "sqlite3";
        return new (isSync ? SyncQueue : Queue)(client, this.key, this.#calls.options);
    }

    // For a transaction: the words alone

    putWords(id, payload, options = {}) {
        return words.put(this.key, id, payload, options);
    }

    sendWords(target, id, payload, options = {}) {
        return words.send(this.key, target, id, payload, options);
    }

    cancelWords(...ids) {
        return words.cancel(this.key, ids);
    }

    moveWords(id, options) {
        return words.move(this.key, id, options);
    }

    /** Yields the waiting tasks whose next time lies between `first` and `last`, the earliest first. */
    async* range(options = {}) {
        for (let page = check.options(options, RANGE); page; ) {
            const { rows, more } = await this.#run(this.#calls.rangePage(page));
            yield* rows;
            page = more;
        }
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
            const rows = await this.#run(this.#calls.deadRows(PAGE, last)).catch((error) => {
                if (last === undefined || !(error instanceof WrongArgument)) throw error;
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
}

/**
 * A queue of the file that a connection of better-sqlite3 or node:sqlite has open, in the transaction that is
 * open there. Its methods have done their work when they return, and they throw their errors. So a function for
 * db.transaction() may call them.
 */
class SyncQueue {
    #within;
    #calls;

    constructor(db, key, options = {}) {
        const driver = drivers.driverOf(db);
        if (driver === null || driver === "sqlite3") {
            throw new TypeError(`db is ${check.shown(db)}: expected a connection of better-sqlite3 or node:sqlite`);
        }
        this.#calls = new Calls(key, options);
        this.#within = new Within(db);
        this.key = this.#calls.key;
    }

    static {
        addCalls(this, (queue) => queue.#calls, (queue, work) => queue.#run(work));
    }

    /** Yields the waiting tasks, as Queue.range does. */
    * range(options = {}) {
        for (let page = check.options(options, RANGE); page; ) {
            const { rows, more } = this.#run(this.#calls.rangePage(page));
            yield* rows;
            page = more;
        }
    }

    #run(work) {
        let step = work.next();
        while (!step.done) step = work.next(this.#send(step.value.command));
        return step.value;
    }

    #send(command) {
        try {
            return this.#within.sendCommand(command);
        } catch (error) {
            throw translated(error);
        }
    }
}

module.exports = { Queue, SyncQueue, checkClient, isCluster, isSentinel };
