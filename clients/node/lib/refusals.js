// SPDX-License-Identifier: MIT
// The errors of a server and of a file, as a worker treats them, and as a Queue throws them.
"use strict";
const { TickwheelError, TaskIsDead, WrongArgument, NotAQueue, NoRights, WrongFormat, Unavailable, Full, Elsewhere,
    WorkerError } = require("./errors");
const { kindOf } = require("./replies");

// The class of an error, by the first word of a server's error; if that says nothing, by the contract's text.
const BY_KIND = {
    "": Unavailable, LOADING: Unavailable, TRYAGAIN: Unavailable, NOREPLICAS: Unavailable, BUSY: Unavailable,
    ASK: Unavailable, OOM: Full, MISCONF: Full, READONLY: Elsewhere, UNBLOCKED: Elsewhere, MASTERDOWN: Elsewhere,
    CLUSTERDOWN: Elsewhere, MOVED: Elsewhere, NOAUTH: NoRights, WRONGPASS: NoRights, NOPERM: NoRights,
    WRONGTYPE: NotAQueue, CROSSSLOT: WrongArgument,
};
const BY_TEXT = [
    [/^the task is dead: /, TaskIsDead],
    [/^format is .*: expected \d+; the version/, WrongFormat],
    [/^attempt to write a readonly database/, NoRights],
    [/^max number of clients reached/, Unavailable],
    [/^string or blob too big|: expected /, WrongArgument],
];

/** Returns the text that the contract has for an error. A server puts ERR before it, and SQL the name of a view. Some
 * errors of a connection have a code alone. */
function saidBy(error) {
    return (error.message || String(error.code)).replace(/^(-?ERR |tw_[a-z]+: )/, "");
}

function classOf(error) {
    const kind = kindOf(error), said = saidBy(error);
    if (Object.hasOwn(BY_KIND, kind)) return BY_KIND[kind];
    const [, found] = BY_TEXT.find(([text]) => text.test(said)) || [null, TickwheelError];
    return found;
}

/** Returns the error of a driver as one of this package. All others, such as those of a wrong argument, stay as they
 * are. */
function translated(error) {
    if ([TickwheelError, TypeError, RangeError].some((type) => error instanceof type)) return error;
    return new (classOf(error))(saidBy(error), { cause: error });
}

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
    const kind = kindOf(error), type = classOf(error);
    if (error instanceof WorkerError) return error;
    if (type === Unavailable || type.prototype instanceof Unavailable) return null;
    const keys = queues.map((key) => `'${key}'`).join(", ");
    const advice = ADVICE[kind] ? ADVICE[kind](keys) : /unknown command/i.test(error.message)
        ? "load the module tickwheel.so into this server" : `a command for ${keys} was refused`;
    return new WorkerError(`${error.message}: ${advice}`, { cause: error });
}

/** Whether a server says that it is not, or no longer, the server for this command. */
function isElsewhere(error) {
    return classOf(error) === Elsewhere;
}

module.exports = { translated, endOf, isElsewhere };
