// SPDX-License-Identifier: MIT
// The package of clients/node as a home (node_homes.py). A line that comes in is a call in JSON,
// [NAME, ARGUMENT...], and the line that goes out is its reply, {"value": ...}, or {"error": TEXT, "kind": CLASS}.
// Times are Unix ms.
"use strict";
const readline = require("readline");
const { Back, Dead, FileError, Queue, Retry, connect } = require("../../clients/node");
const { Attempt } = require("../../clients/node/lib/attempt");
const drivers = require("../../clients/node/lib/drivers");
const { OneFile } = require("../../clients/node/lib/filelink");
const { translated } = require("../../clients/node/lib/refusals");
const { RAW } = require("../../clients/node/lib/replies");
const { command, one, transaction } = require("../../clients/node/lib/statements");
const time = require("../../clients/node/lib/time");

const NEVER = new AbortController().signal;
const NO_BEAT_MS = 2 ** 31; // a lease whose third does not pass during a test

let client, link; // the home, and a worker's connection to it
let made; // the driver of a file
const rows = []; // of all takes

time.roundedUp = Date.now; // The clock of a scenario stands at a whole millisecond.

/** Connects to a file without waits for the disk, which is no matter of the contract. */
async function connectFile(url, options) {
    const { open } = drivers;
    drivers.open = async (...words) => {
        made = await open(...words);
        return made;
    };
    const file = await connect(url, options);
    drivers.open = open;
    await made.run(one("PRAGMA synchronous = off"));
    return file;
}

// An attempt is answered by the code of the worker, whose handler ends at once.

const crewOf = (told, stopping) => ({
    settings: { buffers: false, lease: NO_BEAT_MS }, stopping, over: NEVER, emit() {},
    counted(result) {
        told.count = result;
    },
    fail(error) {
        throw error;
    },
});

/** An attempt that sends its words over the link. `told` receives the last reply, and its name in the counts. */
function attemptOf(row, told = {}, stopping = NEVER) {
    return new Attempt(crewOf(told, stopping), {
        async tell(words) {
            told.reply = await link.sendCommand(words, RAW);
            return { reply: told.reply, again: false };
        },
    }, row);
}

/** A handler for each answer. */
const HANDLERS = {
    done() {},
    fail(when, text) {
        throw when === null ? text : new Retry(when, text);
    },
    dead(_, text) {
        throw new Dead(text);
    },
    back(when) {
        throw new Back(when);
    },
};

const whenOf = ({ delay, at }) => (at === undefined ? delay ?? null : new Date(at));

async function collected(found) {
    const all = [];
    for await (const one of found) all.push(one);
    return all;
}

const CALLS = {
    /** Whether Node finds a package. */
    has(name) {
        try {
            return Boolean(require(name));
        } catch (_) {
            return false;
        }
    },
    async open(url, options) {
        const isFile = url.startsWith("sqlite:");
        client = await (isFile ? connectFile : connect)(url, options);
        link = isFile ? await new OneFile(client).find() : client;
    },
    close: () => client.close(),
    /** What becomes of the error of a driver with this text. */
    says(home, text) {
        throw translated(home === "redis" ? new Error(text) : new FileError(text, "SQLITE_CONSTRAINT"));
    },
    /** A method of the queue. */
    call(key, name, ...args) {
        const queue = new Queue(client, key);
        if (typeof queue[name] !== "function") throw new Error(`a Queue has no ${name}()`);
        const found = queue[name](...args);
        return typeof found.next === "function" ? collected(found) : found;
    },
    /** Puts these tasks into a file, in one transaction. */
    fill(key, ids, options) {
        const queue = new Queue(client, key);
        function* work() {
            for (const id of ids) yield* command(queue.putWords(id, "", options)).work();
        }
        return made.run(transaction(false, work(), () => {}));
    },
    /** Takes tasks. Each has the number with which it is answered. */
    async take(queues, lease, count, block) {
        const words = ["TW.TAKE", String(queues.length), ...queues, "LEASE", String(lease), "COUNT",
            String(count), ...(block ? ["BLOCK", String(block)] : []), "NAME", "worker"];
        const found = await link.sendCommand(words, RAW) || [];
        return found.map((row) => ({ ...attemptOf(row).job, number: rows.push(row) - 1 }));
    },
    /** Ends an attempt. Its `count` is the name in the worker's counts. Without a time `back` is that of a
     * worker that stops. */
    async answer(number, how, options, text) {
        const when = whenOf(options), told = {};
        const stopping = how === "back" && when === null ? AbortSignal.abort() : NEVER;
        await attemptOf(rows[number], told, stopping).run(async () => HANDLERS[how](when, text));
        return told;
    },
    touch: (number, lease) => link.sendCommand(["TW.TOUCH", ...attemptOf(rows[number]).job.names, "LEASE",
        String(lease)], RAW),
};

/** As JSON has it, but a Date is Unix ms. */
function plain(name, value) {
    return this[name] instanceof Date ? this[name].getTime() : value;
}

async function reply(line) {
    const [name, ...args] = JSON.parse(line);
    try {
        return { value: await CALLS[name](...args) };
    } catch (error) {
        return { error: error.message, kind: error.constructor.name };
    }
}

(async () => {
    for await (const line of readline.createInterface({ input: process.stdin })) {
        process.stdout.write(`${JSON.stringify(await reply(line), plain)}\n`);
    }
    process.exit(0); // The home may still be open.
})();
