// SPDX-License-Identifier: MIT
"use strict";
const { Retry, Back, Dead, NotYours, ReplyLost, EffectError, TimeoutError, GivenUp, errorText } = require("./errors");
const effect = require("./effect");
const { Job } = require("./job");
const { translated } = require("./refusals");
const { text } = require("./replies");
const { inTransaction } = require("./statements");
const { sleep } = require("./time");

/** Calls the handler. Returns { error } if it failed, else {}. */
async function tried(handler, job) {
    try {
        await handler(job);
        return {};
    } catch (error) {
        return { error };
    }
}

/** The words of the time at which a task shall come again. */
function when({ delay }) {
    return delay instanceof Date ? ["AT", String(delay.getTime())] : ["IN", String(delay)];
}

/** The words of TW.NACK that an error of the handler stands for. */
function failure(error) {
    const words = error instanceof Dead ? ["DEAD"] : error instanceof Retry ? when(error) : [];
    const text = errorText(error);
    return text.length ? [...words, "ERROR", text] : words;
}

/** One attempt of a task: the handler's work, the heartbeat meanwhile, and the command that ends it. `failure`,
 * as { error }, is an error of the handler that was not meant for the worker. */
class Attempt {
    failure = null;
    #crew;
    #loop;
    #abandon;
    #acking = null; // a promise of the reply, while and after the handler acknowledges its job by a script
    #done = false; // It has done so.
    #within = 0; // how often it has acknowledged its job in a transaction that may be open, or was rolled back
    #ended = false; // The handler has returned, or nobody waits for it any more.
    #expiry = null; // a promise of the end of the attempt, whose time limit is over
    #abandoned = new Promise((resolve) => {
        this.#abandon = resolve;
    });

    constructor(crew, loop, row) {
        this.#crew = crew;
        this.#loop = loop;
        this.job = new Job(row, crew.settings.buffers,
            { ackThen: (...args) => this.#ackThen(...args), ackOn: (db) => this.#ackOn(db) });
    }

    /** Makes the attempt, and returns when its handler has ended and the result is known. `limit`: ms, or undefined. */
    async run(handler, limit) {
        if (this.#crew.stopping.aborted) return this.#count(this.#giveBack());
        this.#crew.emit("begin", this.job);
        const outcome = await this.#work(handler, limit);
        this.#ended = true;
        return this.#expiry || this.#count(this.#end(outcome));
    }

    /** Counts the attempt by its result: done, failed, died, back or notYours. */
    async #count(result) {
        this.#crew.counted(await result);
    }

    async #end(outcome) {
        const { job } = this;
        if (this.#acking) await this.#acking.catch(() => {});
        if (this.#within) await this.#findOut();
        if (this.#done) return this.#afterwards(outcome);
        if (job.notYours) return "notYours";
        if (!("error" in outcome)) return this.#acknowledge();
        if (outcome.error instanceof Back) return this.#giveBack(...when(outcome.error));
        return job.givenUp ? this.#giveBack() : this.#fail(outcome.error);
    }

    /** Calls the handler, and keeps the lease meanwhile. Returns { error } if the handler failed, else {}. */
    async #work(handler, limit) {
        const work = new AbortController(), end = () => work.abort();
        this.#crew.over.addEventListener("abort", end);
        this.#beat(work.signal).catch(this.#crew.fail);
        if (limit !== undefined) this.#expire(limit, work).catch(this.#crew.fail);
        const outcome = await Promise.race([tried(handler, this.job), this.#abandoned]);
        this.#crew.over.removeEventListener("abort", end);
        end();
        return outcome;
    }

    /** Tells the handler that the worker ends. */
    giveUp() {
        this.job.end(new GivenUp());
    }

    /** Waits for the handler no longer. */
    abandon() {
        this.#abandon({ error: this.job.signal.reason });
    }

    // The lease

    /** Extends the lease each third of it, until the work has ended or the task is not yours any more. Only the
     * server's word ends a lease, however late it comes. */
    async #beat(ended) {
        for (;;) {
            await sleep(this.#crew.settings.lease / 3, ended);
            if (this.#acking) await this.#acking.catch(() => {}); // It may fail, and the work goes on.
            if (ended.aborted || this.#done) return;
            const told = await this.#touch(ended);
            if (ended.aborted) return;
            if (told.reply === null && !this.#acking && !this.#within) {
                this.#letGo();
                return;
            }
        }
    }

    /** Waits for the end of the time limit, and then fails the attempt, unless its work has ended before. The handler
     * is told so, and keeps its place. While it acknowledges its job itself, the limit rests. */
    async #expire(limit, work) {
        const { signal } = this.job;
        await sleep(limit, work.signal);
        if (work.signal.aborted) return;
        while (this.#acking && !this.#done && !signal.aborted) await this.#acking.catch(() => {});
        if (this.#within) await this.#findOut();
        if (work.signal.aborted || this.#done || signal.aborted) return;
        const error = new TimeoutError(limit);
        work.abort();
        this.#expiry = this.#count(this.#fail(error));
        this.job.end(error);
        await this.#expiry;
    }

    /** Extends the lease. This waits while a transaction is open in which the handler has acknowledged its job. If the
     * task is leased still, that one was rolled back. */
    async #touch(until) {
        const within = this.#within;
        const told = await this.#loop.tell(["TW.TOUCH", ...this.job.names, "LEASE",
            String(this.#crew.settings.lease)], until);
        if (told && told.reply !== null && this.#within === within) this.#within = 0;
        return told;
    }

    #letGo() {
        this.job.end(new NotYours(this.job.queue, this.job.id));
        this.#crew.emit("notYours", this.job);
        return "notYours";
    }

    // A handler that acknowledges its job itself

    async #ackThen(script, keys, args) {
        const words = this.#crew.servers.scriptWords(this.job, script, keys, args);
        this.#checkMine();
        if (this.#acking) throw this.#twice("ackThen");
        this.#acking = this.#runScript(words);
        return this.#acking;
    }

    #checkMine() {
        const { queue, id, notYours } = this.job;
        if (notYours || this.#ended || this.#expiry) throw new NotYours(queue, id);
    }

    #twice(method) {
        const { queue, id } = this.job;
        return new Error(`'${id}' in '${queue}' was acknowledged before: expected one ${method}()`);
    }

    #ackOn(db) {
        return this.#crew.servers.driverOf(this.job, db).run(this.#ackWithin());
    }

    /** Acknowledges the job in the transaction of the handler. The work is for its connection. */
    * #ackWithin() {
        const { queue, id, names } = this.job;
        this.#checkMine();
        let reply;
        try {
            reply = yield* inTransaction(["TW.ACK", ...names]);
        } catch (error) {
            throw translated(error);
        }
        if (reply === 0) throw this.#within ? this.#twice("ackOn") : new NotYours(queue, id);
        this.#within++;
    }

    /** Finds out whether the transaction is committed, in which the handler has acknowledged its job. While it is
     * open this waits. If it was rolled back, the lease begins anew. */
    async #findOut() {
        const told = await this.#touch(this.#crew.over);
        if (told && told.reply === null && !this.#done) this.#acked();
    }

    #acked() {
        this.#done = true;
        this.#crew.emit("done", this.job);
        return "done";
    }

    /** Sends the command until the server has answered, or the worker gives up. */
    async #runScript(words) {
        const { queue, id } = this.job;
        let told;
        try {
            told = await this.#loop.tell(words, this.#crew.over);
        } catch (error) { // Nothing is acknowledged.
            this.#acking = null;
            throw translated(error.cause || error);
        }
        const [state, reply = null] = told ? told.reply : [0];
        if (told && (state !== 0 || told.again)) this.#acked();
        else this.#letGo();
        if (state === 0) throw told && !told.again ? new NotYours(queue, id) : new ReplyLost(queue, id);
        if (state === 2) throw new EffectError(text(reply));
        return effect.plain(reply, this.#crew.settings.buffers);
    }

    /** The end of a handler whose job is done. Its error is told, and changes nothing. */
    #afterwards({ error }) {
        if (error !== undefined && !this.job.givenUp) {
            this.failure = { error };
            const { queue, id } = this.job;
            process.emitWarning(`'${id}' in '${queue}' is done, and its handler failed after the acknowledgement: ` +
                errorText(error), "TickwheelWarning");
        }
        return "done";
    }

    // The end of the attempt. A command whose reply was lost is sent again, and finds that it is done already:
    // then its reply is that for a token that is not the task's.

    #tell(command, ...words) {
        return this.#loop.tell([command, ...this.job.names, ...words], this.#crew.over);
    }

    async #acknowledge() {
        const told = await this.#tell("TW.ACK");
        return !told || (told.reply === 0 && !told.again) ? this.#letGo() : this.#acked();
    }

    /** An acknowledgement of the handler may come just before the end of its time limit. */
    async #fail(error) {
        const told = await this.#tell("TW.NACK", ...failure(error));
        if (told && told.reply === null && this.#expiry && this.#within) return this.#acked();
        if (!told || (told.reply === null && !told.again)) return this.#letGo();
        if (!(error instanceof Retry || error instanceof Dead)) this.failure = { error };
        const dead = told.reply === 0;
        if (dead) this.#crew.emit("dead", this.job, error);
        else this.#crew.emit("failed", this.job, error, told.reply === null ? null : new Date(told.reply));
        return dead ? "died" : "failed";
    }

    async #giveBack(...words) {
        const told = await this.#tell("TW.NACK", "BACK", ...words);
        if (!told || (told.reply === null && !told.again)) return this.#letGo();
        this.#crew.emit("back", this.job);
        return "back";
    }
}

module.exports = { Attempt };
