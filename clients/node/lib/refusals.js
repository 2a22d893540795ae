// SPDX-License-Identifier: MIT
// The server's errors, as a worker treats them.
"use strict";
const { WorkerError } = require("./errors");
const { kindOf } = require("./replies");

// Errors that go away: the command is sent again.
const PASSING = new Set(["READONLY", "LOADING", "UNBLOCKED", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "OOM",
    "MISCONF", "NOREPLICAS", "MOVED", "ASK", "BUSY"]);
const FULL = "ERR max number of clients reached";

// Of these, errors by which a server says that it is not, or no longer, the server for this command.
const ELSEWHERE = new Set(["READONLY", "UNBLOCKED", "MASTERDOWN", "CLUSTERDOWN", "MOVED"]);

const RIGHTS = "+tw.take +tw.ack +tw.nack +tw.touch";
const ADVICE = {
    NOAUTH: () => "give the client the user and the password that the server asks for",
    WRONGPASS: () => "give the client a user and a password that the server knows",
    NOPERM: (keys) => `give the user the rights ${RIGHTS} (ACL SETUSER), and to read and write ${keys}`,
    WRONGTYPE: (keys) => `expected queues, or keys that do not exist yet: ${keys}`,
};

/** Returns the error that ends the worker because of `error`, which concerns these queues; null if the error
 * may go away. */
function endOf(error, queues) {
    const kind = kindOf(error);
    if (error instanceof WorkerError) return error;
    if (kind === "" || PASSING.has(kind) || error.message.startsWith(FULL)) return null;
    const keys = queues.map((key) => `'${key}'`).join(", ");
    const advice = ADVICE[kind] ? ADVICE[kind](keys) : /unknown command/i.test(error.message)
        ? "load the module tickwheel.so into this server" : `a command for ${keys} was refused`;
    return new WorkerError(`${error.message}: ${advice}`, { cause: error });
}

function isElsewhere(error) {
    return ELSEWHERE.has(kindOf(error));
}

module.exports = { endOf, isElsewhere };
