// SPDX-License-Identifier: MIT
"use strict";
const { randomBytes } = require("crypto");
const { text } = require("./replies");
const { sleep } = require("./time");

const POLL_MS = 10; // A change by others is seen after so long.
const PATIENCE_MS = 2000; // for others that write; the worker tries again by itself

const randomName = () => randomBytes(16).toString("hex");

/**
 * A worker's way to a file, which a Line uses as a connection to a server. `links` has those of the worker that
 * are not ended, by the ids that CLIENT UNBLOCK names.
 */
class FileLink {
    #file;
    #links;
    #id = randomName();
    #take = randomName(); // the name of the next take
    #over = new AbortController(); // the worker waits for no reply any more
    #waiting = null; // an AbortController while TW.TAKE waits

    constructor(file, links) {
        this.#file = file;
        this.#links = links;
    }

    /** It tells of no events: the call that fails has the error. */
    on() {}

    get #patience() {
        return Math.min(PATIENCE_MS, this.#file.timeout);
    }

    async connect() {
        await this.#file.connect();
        this.#links.set(this.#id, this);
    }

    async sendCommand(words) {
        const [command, ...rest] = words;
        if (command === "TW.TAKE") return this.#wait(rest);
        if (command !== "CLIENT") return this.#file.call(words, this.#patience, this.#over.signal);
        if (rest[0] === "ID") return this.#id;
        const other = this.#links.get(rest[1]);
        return other && other.#unblock() ? 1 : 0;
    }

    #unblock() {
        if (!this.#waiting) return false;
        this.#waiting.abort();
        return true;
    }

    destroy() {
        this.#links.delete(this.#id);
        this.#over.abort();
        this.#unblock();
    }

    /** Does TW.TAKE: waits for at most BLOCK ms until there are tasks, or for unblock(). Tasks that come too
     * late for the worker go back: otherwise they would wait until their leases have run out. */
    async #wait([many, ...words]) {
        const keys = words.slice(0, many), given = {};
        for (let i = keys.length; i < words.length; i += 2) given[words[i]] = words[i + 1];
        this.#waiting = new AbortController();
        try {
            const found = await this.#untilFound(keys, given, this.#waiting.signal);
            if (this.#over.signal.aborted) await this.#giveBack(found);
            return found;
        } finally {
            this.#waiting = null;
        }
    }

    async #untilFound(keys, given, signal) {
        const end = performance.now() + Number(given.BLOCK || 0), patience = [this.#patience, signal];
        let seen = null, place = 0;
        while (!signal.aborted) {
            const version = await this.#file.version(...patience);
            if (seen !== null && version !== seen) place = await this.#file.place(keys, ...patience);
            if (place <= Date.now()) {
                const found = await this.#tryTake(keys, given, ...patience);
                if (found.length) return found;
                place = await this.#file.place(keys, ...patience);
            }
            seen = version;
            const wait = Math.min(POLL_MS, end - performance.now(), Math.max(1, place - Date.now()));
            if (wait <= 0) break;
            await sleep(wait, signal);
        }
        return [];
    }

    async #tryTake(keys, { LEASE, COUNT, NAME }, ...patience) {
        const found = await this.#file.take([this.#take, keys, text(NAME), LEASE, COUNT], ...patience);
        this.#take = randomName();
        return found;
    }

    async #giveBack(rows) {
        for (const [queue, id, token] of rows) {
            await this.#file.call(["TW.NACK", queue, id, token, "BACK"]).catch(() => {});
        }
    }
}

/** The file as the servers of a worker (servers.js). */
class OneFile {
    #file;
    #links = new Map();

    constructor(file) {
        this.#file = file;
    }

    scriptWords(job) {
        throw new TypeError(`the home of '${job.id}' is a file: expected job.ackOn(db)`);
    }

    driverOf(job, db) {
        return this.#file.adopt(db);
    }

    groups(queues) {
        return [{ slot: 0, queues }];
    }

    async find() {
        return new FileLink(this.#file, this.#links);
    }

    failed() {
        return false;
    }
}

module.exports = { OneFile };
