// SPDX-License-Identifier: MIT
// The other home of tasks: an SQLite file, by plain SQL (docs/store.md). A File is a client that knows the
// commands of the module, so queues and workers are the same in both homes.
"use strict";
const fs = require("fs");
const { basename, dirname, join, resolve } = require("path");
const check = require("./check");
const drivers = require("./drivers");
const { FileError } = require("./errors");
const { Kept } = require("./kept");
const { Place } = require("./place");
const { kindOf } = require("./replies");
const statements = require("./statements");
const { sleep } = require("./time");

const EXTENSION = "tickwheel_sqlite";
const ENDS = ["", "-wal", "-shm"]; // of the file, its log and its index
const WAITS_MS = [1, 2, 5, 10, 15, 20, 25]; // between tries while others write; the last one again and again
const NEVER = new AbortController().signal;

/** Returns the path of a file that may not be there yet, without symbolic links. */
function wholePath(path) {
    try {
        return fs.realpathSync(path);
    } catch (error) {
        if (error.code !== "ENOENT") throw error;
    }
    const folder = dirname(resolve(path)), link = fs.lstatSync(path, { throwIfNoEntry: false });
    if (link && link.isSymbolicLink()) return wholePath(resolve(folder, fs.readlinkSync(path)));
    return fs.existsSync(folder) ? join(fs.realpathSync(folder), basename(path)) : resolve(path);
}

function isEmpty(path) {
    const found = fs.statSync(path, { throwIfNoEntry: false });
    return !found || found.size === 0;
}

/**
 * The queues of an SQLite file: the `client` of Queue and Worker. It has one connection. A file without the
 * tables gets them by the extension tickwheel_sqlite. When the file was replaced or removed, all calls fail.
 */
class File {
    #wanted;
    #driver = new Kept(() => this.#open());
    #changes = 0; // of this connection, which do not change data_version
    #places = new Map(); // those of the file, its log and its index
    #last = Promise.resolve(); // of the changes, which wait for others in the order of their calls

    /** `timeout`: ms that a change waits while others write. `driver`: a name of drivers.NAMES. */
    constructor(path, options = {}) {
        const { timeout = 5000, driver } = check.options(options, ["timeout", "driver"]);
        if (typeof path !== "string") throw new TypeError(`path is ${check.shown(path)}: expected a string`);
        if (path === "" || path === ":memory:") {
            throw new RangeError(`path is ${check.shown(path)}: expected a file`);
        }
        this.path = wholePath(path);
        this.timeout = check.integer("timeout", timeout, 0, 2 ** 31 - 1);
        this.#wanted = drivers.load(driver === undefined ? driver : check.oneOf("driver", driver, drivers.NAMES));
    }

    get driver() {
        return this.#wanted[0];
    }

    /** Returns the driver of a caller's connection to the file. Throws a TypeError unless it is that of the file. */
    adopt(db) {
        const driver = drivers.driverOf(db);
        if (driver === null) {
            throw new TypeError(`db is ${check.shown(db)}: expected a connection of ${this.driver}`);
        }
        if (driver !== this.driver) {
            throw new TypeError(`the connection is one of ${driver}, and the file is open by ${this.driver}: two ` +
                `copies of SQLite break each other's locks: connect(url, { driver: '${driver}' })`);
        }
        return drivers.adopt(db);
    }

    /** Opens the file. A call does so too. */
    async connect() {
        await this.#dataVersion(this.#end());
        return this;
    }

    /** Closes the connection when the calls so far are done. A further call opens the file again. */
    async close() {
        await this.#last;
        const driver = this.#driver.drop();
        if (driver) await driver.then((made) => made.close(), () => {});
        for (const place of this.#places.values()) place.release();
    }

    /** Does a command of the module (docs/redis.md), and returns its reply. */
    async sendCommand(words) {
        return this.call(words);
    }

    /** The same. It waits for others for at most `patience` ms, and not when `signal` is aborted. */
    call(words, patience, signal) {
        const { looks, work } = statements.command(words);
        return this.#transaction(looks, work, patience, signal);
    }

    take(words, patience, signal) {
        const isChange = (found) => found.length > 0; // Workers that find nothing do not wake each other.
        return this.#transaction(false, () => statements.take(...words), patience, signal, isChange);
    }

    place(keys, patience, signal) {
        return this.#transaction(true, () => statements.place(keys), patience, signal);
    }

    /** Returns a text that changes when somebody changes the file. */
    async version(patience, signal) {
        this.#check();
        const others = await this.#dataVersion(this.#end(patience), signal);
        return `${this.#changes} ${others}`;
    }

    async #dataVersion(...until) {
        return (await this.#repeat(() => statements.one("PRAGMA data_version"), ...until)).data_version;
    }

    #transaction(looks, work, patience, signal, isChange = () => true) {
        const whole = () => statements.transaction(looks, work(), () => this.#check());
        const end = this.#end(patience), act = () => this.#repeat(whole, end, signal);
        if (looks) return act();
        const mine = this.#last.then(act);
        this.#last = mine.then((result) => {
            if (isChange(result)) this.#changes++;
        }, () => {});
        return mine;
    }

    /** Returns when a call that begins now waits no longer. */
    #end(patience = this.timeout) {
        return performance.now() + patience;
    }

    /** Does work until no other connection is in its way. It does not wait within SQLite, since that would keep
     * the whole program waiting. */
    async #repeat(work, end, signal = NEVER) {
        for (let tries = 0; ; tries++) {
            try {
                return await (await this.#driver.get()).run(work());
            } catch (error) {
                if (kindOf(error) !== "BUSY" || performance.now() >= end) throw error;
                await sleep(WAITS_MS[Math.min(tries, WAITS_MS.length - 1)], signal);
                if (signal.aborted) throw error;
            }
        }
    }

    // The connection

    async #open() {
        this.#check([""]); // While no connection is open, the log is not ours.
        const found = Place.of(this.path);
        if (found) this.#note("", found);
        this.#checkLog();
        const made = await drivers.open(this.#wanted, this.path, !this.#places.has(""));
        try {
            this.#check([""]); // It has read nothing yet, so it leaves the log of another file alone.
            await made.run(statements.one("PRAGMA schema_version")); // From now on the log stays.
            this.#notePlaces();
            await made.run(statements.one("PRAGMA synchronous = FULL"));
            await this.#install(made);
            this.#notePlaces();
            return made;
        } catch (error) {
            await made.close();
            throw error;
        }
    }

    async #install(driver) {
        if (await driver.run(statements.one("SELECT 1 FROM sqlite_master WHERE name = 'tw_meta'"))) {
            await driver.run(statements.checkFormat());
            return;
        }
        try {
            await driver.load(EXTENSION);
            await driver.run(statements.one("SELECT tw_install()"));
        } catch (error) {
            if (kindOf(error) === "BUSY") throw error;
            throw new FileError(`the file has no tables of Tickwheel, and the extension ${EXTENSION} cannot make ` +
                `them (${error.message}): \`tickwheel put --store FILE </dev/null\` does`, undefined,
                { cause: error });
        }
    }

    // The place of the file

    /** Notes the file of the connection, its log and its index. */
    #notePlaces() {
        const found = new Map(ENDS.map((end) => [end, Place.of(this.path + end)]));
        this.#check([""]);
        if (found.get("-wal") && !found.get("-shm")) throw this.#lost("-shm", "replaced");
        for (const [end, place] of found) this.#note(end, place);
    }

    #note(end, place) {
        if (this.#places.has(end)) this.#places.get(end).release();
        this.#places.delete(end);
        if (place) this.#places.set(end, place);
    }

    /** Throws an error if a log lies beside no file, or an empty one. SQLite would remove it, and it may have
     * the newest tasks of a file that was moved away. */
    #checkLog() {
        if (isEmpty(`${this.path}-wal`) || !isEmpty(this.path)) return;
        throw new FileError(`${this.path}-wal is the log of a file that is not here any more: move it and -shm ` +
            "with that file, under its new name, or remove them if it is gone", "TW_EREPLACED");
    }

    /** Throws an error if the file, its log or its index is not the one at the path any more: tasks would be
     * lost. */
    #check(ends = ENDS) {
        for (const end of ends) {
            if (!this.#places.has(end)) continue;
            const how = this.#places.get(end).lost();
            if (how) throw this.#lost(end, how);
        }
    }

    #lost(end, how) {
        return new FileError(`${this.path}${end} was ${how} while it was open: connect again, when the old ` +
            "-wal and -shm have been moved with the file, or removed", "TW_EREPLACED");
    }
}

/** A connection of the caller: the queues of its file, in the caller's transaction. */
class Within {
    #driver;

    constructor(db) {
        this.#driver = drivers.adopt(db);
    }

    /** Returns the reply; with sqlite3 a promise of it. */
    sendCommand(words) {
        const { looks, work } = statements.command(words);
        return this.#driver.run(statements.savepoint(looks, work()));
    }
}

module.exports = { File, Within };
