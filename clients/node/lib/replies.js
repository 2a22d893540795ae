// SPDX-License-Identifier: MIT
// Replies of the server, and its errors. Replies are asked for as bytes, so that ids and payloads that are no
// UTF-8 come through.
"use strict";
const { FileError } = require("./errors");

// node-redis 4 knows returnBuffers, node-redis 5 typeMapping; each ignores the other's option. 36 is the type
// of strings, 37 the type of maps, which come as flat arrays, as in RESP2. `timeout` takes node-redis 6's own
// limit away: it would end a call that only waits to be sent.
const RAW = Object.freeze({ returnBuffers: true, typeMapping: { 36: Buffer, 37: Array }, timeout: undefined });

// The server's errors begin with a word of capital letters; errors of a connection do not, or have a code.
const REPLY = /^-?[A-Z][A-Z0-9_]+( |$)/;

// Errors of a file that go away, under the names that a server has for such errors. After an error of the disk nobody
// knows whether the work was done, as after a reply that was lost.
const PASSING = { SQLITE_BUSY: "BUSY", SQLITE_LOCKED: "BUSY", SQLITE_FULL: "MISCONF", SQLITE_IOERR: "" };

function isReply(error) {
    if (error instanceof FileError) return true;
    return error instanceof Error && error.code === undefined && REPLY.test(error.message);
}

/** Returns the first word of the server's error, or of such an error of a file; "" for any other error. */
function kindOf(error) {
    if (error instanceof FileError) return PASSING[error.code] ?? "ERR";
    return isReply(error) ? error.message.replace(/^-/, "").split(" ", 1)[0] : "";
}

function text(value) {
    return Buffer.isBuffer(value) ? value.toString() : String(value);
}

function values(payload, buffers) {
    return buffers ? payload : payload.map(text);
}

function fields(flat) {
    const found = {};
    for (let i = 0; i < flat.length; i += 2) found[text(flat[i])] = flat[i + 1];
    return found;
}

/** Returns a task as TW.NEXT and TW.RANGE show it. */
function row([id, due, next]) {
    return { id: text(id), due: new Date(due), next: new Date(next) };
}

// The numbers of TW.INFO, of which a file has the first ones.
const COUNTS = ["tasks", "waiting", "ready", "leased", "dead", "late", "held", "routes", "bytes", "taken", "done",
    "failed", "lapsed", "back", "died", "dropped", "skipped", "coalesced", "delivered", "replaced"];

/** Returns the reply of TW.INFO as an object; null if there is no such queue. */
function stats(flat) {
    if (flat === null) return null;
    const { paused, next, "oldest-ready": oldestReady, ...found } = fields(flat);
    return { ...Object.fromEntries(COUNTS.map((name) => [name, found[name] ?? null])),
        paused: paused === 1, next: next === null ? null : new Date(next), oldestReady };
}

/** Returns an element of TW.DEAD's reply as an object. */
function deadTask([id, due, dead, attempt, error, lapses, next]) {
    return { id: text(id), due: new Date(due), dead: new Date(dead), attempt, error: text(error), lapses, next };
}

module.exports = { RAW, isReply, kindOf, text, values, fields, row, stats, deadTask };
