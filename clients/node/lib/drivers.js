// SPDX-License-Identifier: MIT
// SQLite's drivers for Node. Work on a connection is a generator: it yields statements, [sql, ...values], and
// gets their rows as objects. So each piece of work is written once, for the drivers that wait and the one that
// calls back.
"use strict";
const { pathToFileURL } = require("url");
const { FileError } = require("./errors");

// The drivers, the one that needs no package first.
const NAMES = ["node:sqlite", "better-sqlite3", "sqlite3"];
const CODES = { 5: "SQLITE_BUSY", 6: "SQLITE_LOCKED", 8: "SQLITE_READONLY", 10: "SQLITE_IOERR",
    11: "SQLITE_CORRUPT", 13: "SQLITE_FULL", 14: "SQLITE_CANTOPEN", 19: "SQLITE_CONSTRAINT",
    26: "SQLITE_NOTADB" };

/** Returns an error of a driver as a FileError. The drivers name the codes in different ways, and sqlite3
 * begins the text with the name. */
function fileError(error) {
    const [code] = /^SQLITE_[A-Z]+/.exec(error.code) || [CODES[error.errcode & 0xff]];
    if (error instanceof FileError || (code === undefined && error.code !== "ERR_SQLITE_ERROR")) return error;
    return new FileError(error.message.replace(/^SQLITE_[A-Z]+: /, ""), code, { cause: error });
}

/** A connection of better-sqlite3 or node:sqlite. Its calls return when the work is done. */
class SyncDriver {
    #db;
    #statements = new Map();

    constructor(db) {
        this.#db = db;
    }

    /** Does work, and returns its result. */
    run(work) {
        let step = work.next();
        while (!step.done) {
            let rows;
            try {
                rows = this.#rows(...step.value);
            } catch (error) {
                step = work.throw(fileError(error));
                continue;
            }
            step = work.next(rows);
        }
        return step.value;
    }

    #rows(sql, ...values) {
        if (!this.#statements.has(sql)) this.#statements.set(sql, this.#prepare(sql));
        const made = this.#statements.get(sql);
        if (made.reader !== false) return made.all(...values);
        made.run(...values); // In better-sqlite3 all() is for statements with rows alone.
        return [];
    }

    /** The rows are plain objects with plain numbers, whatever the caller's connection makes. */
    #prepare(sql) {
        const made = this.#db.prepare(sql);
        if (made.safeIntegers) made.safeIntegers(false);
        if (made.setReadBigInts) made.setReadBigInts(false);
        if (made.setReturnArrays) made.setReturnArrays(false);
        return made;
    }

    load(extension) {
        const isBuiltIn = typeof this.#db.enableLoadExtension === "function";
        if (isBuiltIn) this.#db.enableLoadExtension(true);
        try {
            this.#db.loadExtension(extension);
        } finally {
            if (isBuiltIn) this.#db.enableLoadExtension(false);
        }
    }

    close() {
        this.#db.close();
    }
}

/** Returns a promise of what `start` hands to its callback. */
function promised(start) {
    return new Promise((resolve, reject) => {
        start((error, value) => (error ? reject(fileError(error)) : resolve(value)));
    });
}

/** A connection of sqlite3. Only one piece of work at a time uses it, since a transaction belongs to all that
 * do. */
class AsyncDriver {
    #db;
    #statements; // null: none is kept, as the caller could not close the connection with one
    #last = Promise.resolve();

    constructor(db, isOurs) {
        this.#db = db;
        this.#statements = isOurs ? new Map() : null;
    }

    /** Does work, and returns a promise of its result. */
    run(work) {
        const mine = this.#last.then(() => this.#steps(work));
        this.#last = mine.catch(() => {});
        return mine;
    }

    async #steps(work) {
        let step = work.next();
        while (!step.done) {
            let rows;
            try {
                rows = await this.#rows(...step.value);
            } catch (error) {
                step = work.throw(error);
                continue;
            }
            step = work.next(rows);
        }
        return step.value;
    }

    async #rows(sql, ...values) {
        if (!this.#statements) return promised((done) => this.#db.all(sql, values, done));
        if (!this.#statements.has(sql)) {
            let made;
            await promised((done) => {
                made = this.#db.prepare(sql, done);
            });
            this.#statements.set(sql, made);
        }
        const made = this.#statements.get(sql);
        try {
            return await promised((done) => made.all(values, done));
        } catch (error) { // A statement that has found a lock would go on with its transaction.
            this.#statements.delete(sql);
            await promised((done) => made.finalize(done));
            throw error;
        }
    }

    load(extension) {
        return promised((done) => this.#db.loadExtension(extension, done));
    }

    async close() {
        await this.#last;
        for (const made of this.#statements.values()) await promised((done) => made.finalize(done));
        await promised((done) => this.#db.close(done));
    }
}

/** Returns the name of the driver that has made this connection; null: it is none. */
function driverOf(db) {
    const has = (...names) => names.every((name) => typeof db[name] === "function");
    if (!db || typeof db !== "object" || !has("prepare", "exec", "close")) return null;
    if (has("all", "configure")) return "sqlite3";
    return has("pragma") ? "better-sqlite3" : "node:sqlite";
}

const adopted = new WeakMap(); // the driver of each connection of a caller

/** Returns the driver for a connection of the caller. */
function adopt(db) {
    const isAsync = driverOf(db) === "sqlite3";
    if (!adopted.has(db)) adopted.set(db, isAsync ? new AsyncDriver(db, false) : new SyncDriver(db));
    return adopted.get(db);
}

/** Whether the program has loaded a driver already. */
function isLoaded(name) {
    const folder = new RegExp(`[\\\\/]${name}[\\\\/]lib[\\\\/]`);
    return Object.keys(require.cache).some((path) => folder.test(path));
}

/**
 * Returns the name and the module of a driver: the one of this name, or else one that the program has loaded.
 * Two copies of SQLite in a process break each other's locks on a file. If it has loaded none, it is the first
 * that is there.
 */
function load(name) {
    const names = name === undefined ? [...NAMES.filter(isLoaded), ...NAMES] : [name];
    for (const one of names) {
        try {
            return [one, require(one)];
        } catch (error) {
            if (!/^(MODULE_NOT_FOUND|ERR_UNKNOWN_BUILTIN_MODULE)$/.test(error.code)) throw error;
        }
    }
    throw new Error(`${names.join(", ")}: not found: use Node 22.13 or later, or npm install better-sqlite3 ` +
        "or sqlite3, Debian's node-sqlite3");
}

/** Opens a file by node:sqlite. Only a URL can say that the file shall be there; before Node 22.15 a path alone
 * opens a file. */
function openBuiltIn({ DatabaseSync }, path, create) {
    const url = pathToFileURL(path), options = { allowExtension: true };
    url.searchParams.set("mode", create ? "rwc" : "rw");
    try {
        return new DatabaseSync(url, options);
    } catch (error) {
        if (error.code !== "ERR_INVALID_ARG_TYPE") throw error;
        return new DatabaseSync(path, options);
    }
}

/** Opens a file. The connection waits for no lock. */
async function open([name, module], path, create) {
    try {
        if (name === "better-sqlite3") {
            return new SyncDriver(new module(path, { fileMustExist: !create, timeout: 0 }));
        }
        if (name === "node:sqlite") return new SyncDriver(openBuiltIn(module, path, create));
        const mode = module.OPEN_READWRITE | (create ? module.OPEN_CREATE : 0);
        let db;
        await promised((done) => {
            db = new module.Database(path, mode, done);
        });
        db.configure("busyTimeout", 0);
        return new AsyncDriver(db, true);
    } catch (error) {
        // better-sqlite3 looks for the folder by itself.
        if (!/^Cannot open database/.test(error.message)) throw fileError(error);
        throw new FileError(error.message, "SQLITE_CANTOPEN", { cause: error });
    }
}

module.exports = { NAMES, driverOf, adopt, load, open };
