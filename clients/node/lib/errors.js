// SPDX-License-Identifier: MIT
// The errors by which a handler ends its attempt, those of calls, the reasons of job.signal, the error that ends a
// worker, and those of a file.
"use strict";
const check = require("./check");

const ERROR_BYTES = 4096; // The most that stays with a task.

class Named extends Error {
    get name() {
        return this.constructor.name;
    }
}

/** Sets the delay of an error, in ms, or a Date. It is checked, so it stays. */
function setDelay(error, delay) {
    if (delay instanceof Date) check.time("delay", delay);
    else check.ms("delay", delay);
    Object.defineProperty(error, "delay", { value: delay, enumerable: true });
}

/** A handler throws it: the attempt has failed, and the next one shall come after `delay` ms, or at a Date. */
class Retry extends Named {
    constructor(delay, message = "", options = undefined) {
        super(message, options);
        setDelay(this, delay);
    }
}

/** A handler throws it: it is too early, and the task shall come again after `delay` ms, or at a Date. Nothing
 * has failed, and the attempt does not count. */
class Back extends Named {
    constructor(delay) {
        super("it is too early");
        setDelay(this, delay);
    }
}

/** A handler throws it: no attempt can succeed, and the task shall be dead now. */
class Dead extends Named {}

/** A call has failed, in a server or in a file. The classes below tell why; this one itself stands for all other
 * reasons. `cause` is the error of node-redis, or a FileError, if there is one. */
class TickwheelError extends Named {}

/** A dead task cannot be moved. replay() lets it wait again, and put() replaces it. */
class TaskIsDead extends TickwheelError {}

/** The home does not take an argument, such as an id of 961 bytes. The message has the range. */
class WrongArgument extends TickwheelError {}

/** The key of the queue holds something else. */
class NotAQueue extends TickwheelError {}

/** The user may not do this, the server does not know the user, or the file may only be read. */
class NoRights extends TickwheelError {}

/** Another version of Tickwheel has written the file, and that version can read it. */
class WrongFormat extends TickwheelError {}

/** The home cannot do it now: it cannot be reached, a server is loading its data or lacks replicas, or others have
 * written to the file for longer than its `timeout`. The same call may succeed later. If the connection broke before
 * the reply, the call may have been done. */
class Unavailable extends TickwheelError {}

/** Memory or the disk is full. Nothing has changed. */
class Full extends Unavailable {}

/** Another server has the queue now, or shall have it: this one is a replica, or not the node of a cluster for it.
 * Nothing has changed. A client of Sentinels or of a cluster finds the other server. */
class Elsewhere extends Unavailable {}

/** The reason of job.signal when the task is not yours any more: it was cancelled, or another worker may
 * have it. */
class NotYours extends TickwheelError {
    constructor(queue, id) {
        super(`'${id}' in '${queue}' is not yours any more`);
    }
}

/** A reply of the server was lost, and then its answer was "not yours". So the script of ackThen() has run once, or
 * not at all. */
class ReplyLost extends NotYours {
    constructor(queue, id) {
        super(queue, id);
        this.message = `'${id}' in '${queue}': a reply was lost, so the script has run once or not at all, and ` +
            "the task is not yours any more";
    }
}

/** The script of ackThen() has failed. The job is done all the same, since its acknowledgement came first, and so
 * are the changes that the script made before. */
class EffectError extends TickwheelError {}

/** The reason of job.signal when the time limit of the attempt is over. The attempt has failed by it. */
class TimeoutError extends Named {
    constructor(limit) {
        super(`the time limit of ${limit / 1000} s is over`);
    }
}

/** The reason of job.signal when the worker ends before the handler has ended. The task is given back. */
class GivenUp extends Named {
    constructor() {
        super("the worker ends, and gives its tasks back");
    }
}

/** An error that does not go away has ended the worker. `cause` is the error of the server, or of the file. */
class WorkerError extends TickwheelError {}

/** The cause of an error of a file, the same for each driver. `code` is that of SQLite, for example SQLITE_BUSY; or
 * TW_EREPLACED or TW_EFORMAT, as the library in C has it. `cause` is the error of the driver. */
class FileError extends Named {
    constructor(message, code = "SQLITE_ERROR", options = undefined) {
        super(message, options);
        Object.defineProperty(this, "code", { value: code, enumerable: true });
    }
}

function cut(text) {
    const whole = Buffer.from(text);
    if (whole.length <= ERROR_BYTES) return whole;
    let end = ERROR_BYTES;
    while ((whole[end] & 0xc0) === 0x80) end--; // Within a character of UTF-8.
    return whole.subarray(0, end);
}

function textOf(error) {
    if (!(error instanceof Error)) return String(error);
    if (error instanceof Retry || error instanceof Dead) {
        return error.message || error.cause === undefined ? error.message : textOf(error.cause);
    }
    const type = error.name === "Error" ? error.constructor.name : error.name;
    return `${type}: ${error.message}`;
}

/** Returns the text of a handler's error for TW.NACK, at most 4,096 bytes, cut at the end of a character.
 * Whatever a handler throws has a text: it must not end the worker. */
function errorText(error) {
    try {
        return cut(textOf(error));
    } catch (_) { // Its name or its message throws, or is no text.
        return cut("an error without a text");
    }
}

module.exports = {
    Retry, Back, Dead, TickwheelError, TaskIsDead, WrongArgument, NotAQueue, NoRights, WrongFormat, Unavailable, Full,
    Elsewhere, NotYours, ReplyLost, EffectError, TimeoutError, GivenUp, WorkerError, FileError, errorText,
};
