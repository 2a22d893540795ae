// SPDX-License-Identifier: MIT
"use strict";
const { EventEmitter, setMaxListeners } = require("events");
const os = require("os");
const { Attempt } = require("./attempt");
const check = require("./check");
const { WorkerError } = require("./errors");
const { Loop } = require("./loop");
const { Places } = require("./places");
const { serversOf } = require("./servers");
const { sleep } = require("./time");

const LONGEST_LEASE = 2 ** 32 - 1; // ms, of TW.TAKE
const LONGEST_TIMER = 2 ** 31 - 1; // ms, of setTimeout
const NAME_BYTES = 255;
const LAST_MS = 1000; // for handlers to end after they were told that the worker ends
const LIMIT = 1000, MOST_ATTEMPTS = 2 ** 31 - 1; // the attempts of a runReady()
const OPTIONS = ["name", "lease", "jobs", "grace", "block", "timeout", "buffers", "nodeAddressMap"];

function settingsOf(options) {
    const { name = `${os.hostname()}:${process.pid}`, lease = 30000, jobs = 4, grace, block = 5000,
        timeout = 5000, buffers = false } = check.options(options, OPTIONS);
    const size = Buffer.byteLength(check.bytes("name", name));
    if (size > NAME_BYTES) {
        throw new RangeError(`name is ${check.shown(name)}: expected ${NAME_BYTES} bytes at most`);
    }
    return {
        name,
        lease: check.integer("lease", lease, 1, LONGEST_LEASE),
        jobs: check.integer("jobs", jobs, 1, check.MANY),
        grace: grace === undefined ? undefined : check.integer("grace", grace, 0, LONGEST_TIMER),
        block: check.integer("block", block, 1, 3600000),
        timeout: check.integer("timeout", timeout, 1, 3600000),
        buffers: check.yesNo("buffers", buffers),
    };
}

/** Takes tasks of queues, and calls a handler for each. docs/node.md says how it behaves. */
class Worker extends EventEmitter {
    #servers;
    #settings;
    #tasks = new Map(); // by queue: { handler, jobs, timeout }
    #counts = { done: 0, failed: 0, died: 0, back: 0, notYours: 0 };
    #running = new Map(); // attempts, each with a promise of its end
    #loops;
    #stopping; // take no more
    #aborting; // the running work is given up
    #over; // send no more
    #ended; // a promise of the end of run(), or of runReady()
    #patient; // a call that failed is repeated

    constructor(client, options = {}) {
        super();
        this.#renew();
        this.#settings = settingsOf(options);
        this.#servers = serversOf(client, options.nodeAddressMap);
    }

    /** Lets the worker be one that has not run. */
    #renew() {
        [this.#loops, this.#aborting, this.#ended, this.#patient] = [[], false, null, true];
        [this.#stopping, this.#over] = [new AbortController(), new AbortController()];
        setMaxListeners(0, this.#stopping.signal, this.#over.signal); // One for each job that waits.
    }

    get counts() {
        return { ...this.#counts };
    }

    get name() {
        return this.#settings.name;
    }

    /** Calls `handler` for each task of a queue. With `jobs` the queue has so many places of its own. An attempt
     * that takes longer than `timeout` ms has failed. */
    task(queue, handler, options = {}) {
        const { jobs, timeout } = check.options(options, ["jobs", "timeout"]);
        if (typeof queue !== "string") {
            throw new TypeError(`the queue is ${check.shown(queue)}: expected a string`);
        }
        if (typeof handler !== "function") {
            throw new TypeError(`the handler is ${check.shown(handler)}: expected a function`);
        }
        if (jobs !== undefined) check.integer("jobs", jobs, 1, check.MANY);
        if (timeout !== undefined) check.integer("timeout", timeout, 1, LONGEST_TIMER);
        if (this.#ended) throw new Error(`the worker runs already: call task('${queue}') before run()`);
        if (this.#tasks.has(queue)) throw new Error(`'${queue}' has a handler already`);
        this.#tasks.set(queue, { handler, jobs, timeout });
        return this;
    }

    /** Works until stop() or a signal. Returns the counts, or fails with the error that ended the worker. */
    async run(options = {}) {
        const { signals = ["SIGTERM", "SIGINT"] } = check.options(options, ["signals"]);
        this.#checkNew();
        const onSignal = () => (this.#stopping.signal.aborted ? this.#giveUp() : this.#halt());
        for (const signal of signals) process.on(signal, onSignal);
        this.#ended = this.#work((crew) => this.#all(crew)).finally(() => {
            for (const signal of signals) process.off(signal, onSignal);
        });
        return this.#ended;
    }

    /** For tests: calls the handlers for the tasks that are ready, one after the other, until a take finds
     * none. Returns the counts of this call. No call to the server is repeated. */
    async runReady(options = {}) {
        const { throwErrors = false, limit = LIMIT } = check.options(options, ["throwErrors", "limit"]);
        check.yesNo("throwErrors", throwErrors);
        check.integer("limit", limit, 1, MOST_ATTEMPTS);
        this.#checkNew();
        const before = this.counts;
        this.#patient = false;
        const work = (crew) => this.#allReady(crew, throwErrors, limit);
        this.#ended = this.#work(work).finally(() => this.#renew());
        const after = await this.#ended;
        return Object.fromEntries(Object.keys(after).map((name) => [name, after[name] - before[name]]));
    }

    #checkNew() {
        if (this.#ended) throw new Error("the worker runs already, or has run: make another one");
        if (this.#tasks.size === 0) throw new Error("the worker has no queue: call task() first");
    }

    /** Takes no more tasks, and waits until the handlers that run have ended. Returns the counts. */
    async stop() {
        this.#halt();
        await this.#ended;
        return this.counts;
    }

    /** Stops, and tells the handlers to end. A second later it gives back the tasks that are still at work. */
    async giveUp() {
        this.#giveUp();
        await this.#ended;
        return this.counts;
    }

    #halt() {
        if (this.#stopping.signal.aborted) return;
        this.#stopping.abort();
        for (const loop of this.#loops) {
            loop.places.close();
            loop.unblock();
        }
        const { grace } = this.#settings;
        if (grace !== undefined) this.#later(grace, () => this.#giveUp());
    }

    #giveUp() {
        this.#halt();
        if (this.#aborting) return;
        this.#aborting = true;
        for (const attempt of this.#running.keys()) attempt.giveUp();
        this.#later(LAST_MS, () => {
            for (const attempt of this.#running.keys()) attempt.abandon();
        });
        this.#later(LAST_MS + this.#settings.timeout, () => this.#over.abort());
    }

    /** Calls `action` after so many ms, unless the worker has ended by then. */
    async #later(wait, action) {
        await sleep(wait, this.#over.signal);
        if (!this.#over.signal.aborted) action();
    }

    // The whole

    /** Makes the loops, lets them do `work`, and closes them. */
    async #work(work) {
        const failures = [];
        const crew = this.#makeCrew((error) => {
            failures.push(error);
            this.#halt();
        });
        try {
            this.#loops = this.#groups().map(([group, settings]) => new Loop(crew, group, settings));
            await work(crew);
        } finally {
            this.#over.abort();
            for (const loop of this.#loops) {
                loop.places.close();
                loop.close();
            }
        }
        if (failures.length) throw failures[0];
        return this.counts;
    }

    /** Works until all loops and all handlers have ended. An error of one of them stops the others as stop()
     * does. */
    async #all(crew) {
        await Promise.all(this.#loops.map((loop) => loop.run().catch(crew.fail)));
        await Promise.all(this.#running.values());
    }

    /** Works on the tasks that are ready, one after the other. The task behind the last attempt goes back. */
    async #allReady(crew, throwErrors, limit) {
        for (let left = limit; ; left--) {
            const [loop, row] = await this.#takeOne();
            if (!row) return;
            if (left === 0) this.#halt();
            const attempt = this.#took(crew, loop, row);
            await this.#running.get(attempt);
            if (left === 0) {
                throw new Error(`${limit} attempts were made, and '${attempt.job.id}' is ready: raise limit, ` +
                    "unless its handler puts it, or gives it back, for now each time");
            }
            if (throwErrors && attempt.failure) throw attempt.failure.error;
        }
    }

    /** Returns the first loop that finds a ready task, and the task. */
    async #takeOne() {
        for (const loop of this.#loops) {
            const row = await loop.takeOne();
            if (row) return [loop, row];
        }
        return [];
    }

    #makeCrew(fail) {
        const crew = {
            fail,
            servers: this.#servers,
            settings: this.#settings,
            stopping: this.#stopping.signal,
            over: this.#over.signal,
            emit: (...event) => this.emit(...event),
            counted: (count) => this.#counted(count),
            took: (loop, row) => this.#took(crew, loop, row),
            trouble: (error, wait) => this.#trouble(error, wait),
        };
        return crew;
    }

    /** Returns the groups of queues that a loop each takes from, with the settings of the loop. A queue
     * with places of its own has a loop of its own, and the others share the worker's places. */
    #groups() {
        const { jobs: all, block } = this.#settings, found = [], shared = [];
        for (const [queue, { jobs }] of this.#tasks) {
            if (jobs === undefined) shared.push(queue);
            else {
                const places = new Places(jobs);
                found.push([this.#servers.groups([queue])[0], { places, alone: true, block }]);
            }
        }
        if (!shared.length) return found;
        const groups = this.#servers.groups(shared), places = new Places(all, groups.length);
        const settings = { places, alone: groups.length === 1, block };
        return [...found, ...groups.map((group) => [group, settings])];
    }

    // Events

    #took(crew, loop, row) {
        const attempt = new Attempt(crew, loop, row);
        const { handler, timeout } = this.#tasks.get(attempt.job.queue);
        this.#running.set(attempt, attempt.run(handler, timeout).catch(crew.fail).finally(() => {
            this.#running.delete(attempt);
            loop.places.end();
        }));
        return attempt;
    }

    #counted(count) {
        this.#counts[count]++;
        if (count === "died") this.#counts.failed++;
    }

    #trouble(error, wait) {
        if (!this.#patient) throw new WorkerError(error.message, { cause: error });
        if (this.emit("trouble", error, wait)) return;
        const text = `${error.message}; the worker tries again in ${Math.round(wait)} ms`;
        process.emitWarning(text, "TickwheelWarning");
    }
}

module.exports = { Worker };
