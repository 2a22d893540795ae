// SPDX-License-Identifier: MIT
// Values of the rows of a file, for its statements and its looks.
"use strict";
const { FileError } = require("./errors");

const MOST_ID = 1024; // bytes of an id, in each verb but a put
const NO_BYTES = Buffer.alloc(0);

/** Some drivers have a Uint8Array. */
function bytesOf(value) {
    return Buffer.isBuffer(value) ? value : Buffer.from(value);
}

function payloadOf(row) {
    return [row.payload === null ? NO_BYTES : bytesOf(row.payload)];
}

/** Returns an id for statements that do not check it themselves. Throws the contract's error. */
function named(id) {
    const name = bytesOf(id);
    if (name.length >= 1 && name.length <= MOST_ID) return name;
    throw new FileError(`id has ${name.length} bytes: expected 1 to ${MOST_ID}`, "SQLITE_CONSTRAINT");
}

module.exports = { bytesOf, payloadOf, named };
