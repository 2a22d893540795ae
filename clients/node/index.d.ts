// SPDX-License-Identifier: MIT
/// <reference types="node" />
import { EventEmitter } from "events";

/** Text, or bytes that are sent as they are. */
export type Bytes = string | Uint8Array;

/** A value of a payload: text and bytes stay as they are, and any other value becomes JSON. */
export type Value = Bytes | number | boolean | null | object;

/** Several values of one payload. */
export class Values {
    constructor(...values: [Value, ...Value[]]);
    readonly values: Value[];
}

/** The words of a command, for multi().addCommand(). */
export type Words = Array<string | Buffer>;

/** A connected client, cluster, pool or Sentinel client of npm's redis. */
export interface Client {
    sendCommand(...args: any[]): Promise<any>;
}

/** A client or a cluster, from which a worker makes its connections. A cluster is connected. */
export interface Source extends Client {
    duplicate(...overrides: any[]): any;
}

/** A client for the primary that sentinels name. */
export interface Primary extends Client {
    find(): Promise<Source>;
    close(): Promise<void>;
}

/** A client of npm's redis, with its own methods. */
export interface Server extends Source {
    /** Closes the connection when the calls so far are done. */
    close(): Promise<void>;
    [method: string]: any;
}

/** A connection of better-sqlite3 or node:sqlite, whose calls return when the work is done. */
export interface SyncConnection {
    prepare(sql: string): any;
    exec(sql: string): any;
    close(): any;
}

/** A connection of npm's sqlite3. */
export interface AsyncConnection extends SyncConnection {
    all(sql: string, ...rest: any[]): any;
    configure(option: any, ...rest: any[]): any;
}

export interface FileOptions {
    /** ms that a change waits while others write. Default: 5000. */
    timeout?: number;
    /** Default: a driver that the program has loaded already; otherwise the first of these that is there. */
    driver?: "node:sqlite" | "better-sqlite3" | "sqlite3";
}

/** The queues of an SQLite file: the `client` of Queue and Worker. Its own methods reject with a FileError, and
 * connect() and those of a Queue with a TickwheelError. */
export class File implements Client {
    constructor(path: string, options?: FileOptions);
    readonly path: string;
    readonly timeout: number;
    readonly driver: "node:sqlite" | "better-sqlite3" | "sqlite3";
    /** Opens the file. A call does so too. */
    connect(): Promise<this>;
    /** Closes the connection when the calls so far are done. */
    close(): Promise<void>;
    sendCommand(words: Words): Promise<any>;
}

type SqliteUrl = `sqlite:///${string}`;
type SentinelUrl = `${"redis" | "rediss"}+sentinel://${string}`;
type OptionsFor<U> = U extends SqliteUrl ? FileOptions
    : U extends SentinelUrl ? Pick<SentinelOptions, "client" | "sentinel" | "timeout"> : object;

/** Resolves to the client of this home, connected. Its close() lets the program end. `options` are those of File, of sentinelPrimary, or of
 * createClient or createCluster of npm's redis. */
export function connect<U extends string>(url: U, options?: OptionsFor<U>):
    Promise<U extends SqliteUrl ? File : U extends SentinelUrl ? Primary : Server>;

/** When a task is due: `delay` ms from now, or `at` a time (a Date, or Unix time in ms). At most one of them.
 * Both are integers from 0 to 253402300799999, the end of the year 9999. */
export type When = { delay?: number; at?: undefined } | { delay?: undefined; at?: Date | number };

export interface Backoff {
    /** ms after the first failed attempt. */
    first: number;
    /** Each further wait is so many times as long, 1 to 100, with at most two decimal places. */
    factor: number;
    /** ms that no wait exceeds. */
    max: number;
    /** Each wait is longer or shorter by up to so many percent, 0 to 100. Default: the server's
     * setting `tickwheel.jitter`, 10 unless changed. */
    jitter?: number;
}

export type PutOptions = When & {
    /** nx: only a new task; xx: only a task that is there; gt, lt: replaces a task only by a later or earlier
     * time. */
    condition?: "nx" | "xx" | "gt" | "lt";
    /** A task that exists keeps its time, and gets the new payload and options: for tasks that a program puts
     * at each start. Alone, or with nx or xx. */
    keepDue?: boolean;
    /** ms between two periods of a repeating task. null: it runs once. */
    every?: number | null;
    /** The number of calls, with `every`. Default, and null: no end. */
    times?: number | null;
    /** What becomes of periods that were missed. Default: coalesce. */
    missed?: "burst" | "skip" | "coalesce";
    /** A first attempt that is later by so many ms is not made: the task, or its period, is dropped. Default,
     * and null: no limit. */
    maxLate?: number | null;
    /** Failures until the task is dead, 1 to 1,000,000. Default: the server's setting, 20 unless changed. */
    tries?: number;
    /** The waits between attempts. Default: the server's settings. */
    backoff?: Backoff;
};

/** Fields and values of a Stream's entry. */
export type Fields = Record<string, Value> | Map<Bytes, Value>;

export type StreamOptions = PutOptions & {
    kind?: "stream";
    /** Trims the Stream to about so many entries. */
    maxlen?: number;
};

export type ListOptions = PutOptions & {
    /** The value goes to the right end of the List, or to its left one. */
    kind: "list" | "list left";
    maxlen?: undefined;
};

export type MoveOptions = When & {
    /** Only to a later (gt) or an earlier (lt) time. */
    condition?: "gt" | "lt";
};

/** A task, as TW.GET describes it. Payload holds Buffers if the queue was made with `buffers`. */
export interface Task<P extends string | Buffer = string> {
    id: string;
    due: Date;
    /** ms until `next`; 0 if that time has passed. */
    remaining: number;
    /** ms; null: the task runs once. */
    every: number | null;
    /** Calls left; null: no end. */
    times: number | null;
    target: string;
    kind: "stream" | "list" | "list left" | "workers";
    maxlen: number | null;
    /** null: the task runs once. */
    missed: "burst" | "skip" | "coalesce" | null;
    /** Further periods for which the call under way stands. */
    missedPeriods: number;
    /** ms; null: no limit. */
    maxLate: number | null;
    /** Attempts that have begun: 0 before the first. */
    attempt: number;
    /** Attempts that have lapsed: their leases ran out. */
    lapses: number;
    /** It stands behind the attempt of an older task, of which `attempt`, `next` and `worker` are then. */
    replaced: boolean;
    state: "waiting" | "ready" | "leased" | "dead";
    /** When it can be taken next; of a leased task the end of the lease, of a dead one null. */
    next: Date | null;
    worker: string;
    error: string;
    payload: P[];
    /** The first value of the payload, as text. */
    readonly text: string;
    /** The first value, read as JSON once. Throws a SyntaxError if it is none. */
    readonly json: any;
}

/** A waiting task. */
export interface Row {
    id: string;
    due: Date;
    /** The time of its next chance to be taken or delivered. */
    next: Date;
}

export interface RangeOptions {
    /** The first next time: a Date, or Unix time in ms. Default: none is too early. */
    first?: Date | number;
    /** The last next time. Default: none is too late. */
    last?: Date | number;
    /** Tasks of one call, 1 to 10,000. Default: 1000. */
    count?: number;
}

export interface ForecastOptions {
    /** ms of a step, 1 to 3155760000000. Default: 1000. */
    step?: number;
    /** Their number, 1 to 10,000. Default: 60. */
    steps?: number;
}

/** A queue, as TW.INFO describes it. A file counts no events, has no targets and knows nothing of memory: null. */
export interface Stats {
    /** Waiting, ready and leased. */
    tasks: number;
    waiting: number;
    ready: number;
    leased: number;
    dead: number;
    paused: boolean;
    /** Of the waiting task that comes first; null: no task waits. */
    next: Date | null;
    /** ms for which one task has been ready for longest; 0: none is ready. */
    oldestReady: number;
    /** Ready, and the server has neither delivered nor offered them yet. */
    late: number | null;
    /** Waiting, because their target refuses. */
    held: number | null;
    /** Different targets, with their options. */
    routes: number | null;
    bytes: number | null;
    taken: number | null;
    done: number | null;
    failed: number | null;
    lapsed: number | null;
    back: number | null;
    died: number | null;
    dropped: number | null;
    skipped: number | null;
    coalesced: number | null;
    delivered: number | null;
    replaced: number | null;
}

export interface DeadTask {
    id: string;
    due: Date;
    /** When it died. */
    dead: Date;
    attempt: number;
    error: string;
    /** Attempts that have lapsed. */
    lapses: number;
    /** A dead task has none. */
    next: null;
}

export interface QueueOptions<B extends boolean = boolean> {
    /** Payloads in replies are Buffers. Default: false, strings of UTF-8. */
    buffers?: B;
}

/** Tasks for workers under one key. A wrong argument is a TypeError or RangeError, and then nothing is sent; or a
 * WrongArgument, where the home alone knows the range. All methods reject with Unavailable (Full, Elsewhere), NoRights,
 * NotAQueue, WrongFormat, or another TickwheelError, if the home cannot or may not do the call. After an error nothing
 * has changed, unless the connection broke. */
export class Queue<B extends boolean = false> {
    constructor(client: Client | AsyncConnection, key: Bytes, options?: QueueOptions<B>);
    readonly key: Bytes;

    /** The same queue in the transaction that is open on a connection of yours, or through another client. */
    on(client: Client | AsyncConnection): Queue<B>;
    on(db: SyncConnection): SyncQueue<B>;

    /** Files a task; the server makes an id for null. Resolves to the id, or to null if `condition` kept the
     * queue as it was. */
    put(id: Bytes | null, payload: Value | Values, options?: PutOptions): Promise<string | null>;
    /** Files a task that the server itself delivers to a Stream or a List when it is due. The payload is fields and
     * values for a Stream, and one value for a List. `tries` are the refusals with which the task is dead, 1 to 15. A
     * file has no targets: TypeError. Resolves as put(). */
    send(target: Bytes, id: Bytes | null, payload: Fields, options?: StreamOptions): Promise<string | null>;
    send(target: Bytes, id: Bytes | null, payload: Value, options: ListOptions): Promise<string | null>;
    /** Resolves to a number for each id: 0 if there was no such task, 1 if it was cancelled, 2 if a worker had
     * it: it is removed, and its work may happen. */
    cancel(...ids: [Bytes, ...Bytes[]]): Promise<(0 | 1 | 2)[]>;
    /** Resolves to true, to false if `condition` kept the old time, or to null if there is no such task. Rejects with
     * TaskIsDead if it is dead. */
    move(id: Bytes, options: MoveOptions): Promise<boolean | null>;
    get(id: Bytes): Promise<Task<B extends true ? Buffer : string> | null>;
    /** The number of tasks that are not dead. */
    count(): Promise<number>;
    /** The waiting task that comes first. */
    next(): Promise<Row | null>;
    /** The waiting tasks whose next time lies between two times, the earliest first. */
    range(options?: RangeOptions): AsyncGenerator<Row, void, undefined>;
    /** How many waiting tasks become ready in each of so many steps from now on. Of a task that repeats, a server
     * counts the next period, and a file each one in this time. */
    forecast(options?: ForecastOptions): Promise<number[]>;
    /** The tasks in each state, and the events of the queue so far; null if there is no such queue. */
    stats(): Promise<Stats | null>;
    /** Lets a waiting task be ready now. Resolves to false if no waiting task has this id. */
    promote(id: Bytes): Promise<boolean>;
    /** Lets waiting tasks be ready now, by one command: at most 10,000, and for about 20 ms. Resolves to their
     * number; 0: no task waits. It does not go on by itself, because the next period of a task that repeats
     * may wait by then. */
    promoteAll(): Promise<number>;
    /** Resolves to false if the queue was paused already. */
    pause(): Promise<boolean>;
    /** Resolves to false if the queue was not paused. */
    resume(): Promise<boolean>;

    /** Dead tasks, the first death first; 100 unless `count` says another number, at most 10,000. Rejects with
     * WrongArgument if the task `after` is not dead any more. */
    dead(options?: { count?: number; after?: Bytes }): Promise<DeadTask[]>;
    /** All dead tasks. They may be replayed and purged meanwhile. */
    allDead(): AsyncGenerator<DeadTask, void, undefined>;
    /** Lets a dead task wait again. Resolves to false if there is none with this id. */
    replay(id: Bytes, options?: When): Promise<boolean>;
    /** Resolves to the number of tasks that wait again. */
    replayAll(options?: When): Promise<number>;
    /** Removes a dead task. Resolves to false if there is none with this id. */
    purge(id: Bytes): Promise<boolean>;
    /** Resolves to the number of dead tasks that were removed. */
    purgeAll(): Promise<number>;

    putWords(id: Bytes | null, payload: Value | Values, options?: PutOptions): Words;
    sendWords(target: Bytes, id: Bytes | null, payload: Fields, options?: StreamOptions): Words;
    sendWords(target: Bytes, id: Bytes | null, payload: Value, options: ListOptions): Words;
    cancelWords(...ids: [Bytes, ...Bytes[]]): Words;
    moveWords(id: Bytes, options: MoveOptions): Words;
}

/** A Queue of a file over a connection of better-sqlite3 or node:sqlite, in the transaction that is open there.
 * The methods have done their work when they return, and throw the errors with which those of Queue reject. */
export class SyncQueue<B extends boolean = false> {
    constructor(db: SyncConnection, key: Bytes, options?: QueueOptions<B>);
    readonly key: Bytes;

    put(id: Bytes | null, payload: Value | Values, options?: PutOptions): string | null;
    cancel(...ids: [Bytes, ...Bytes[]]): (0 | 1 | 2)[];
    move(id: Bytes, options: MoveOptions): boolean | null;
    get(id: Bytes): Task<B extends true ? Buffer : string> | null;
    count(): number;
    next(): Row | null;
    range(options?: RangeOptions): Generator<Row, void, undefined>;
    forecast(options?: ForecastOptions): number[];
    stats(): Stats | null;
    promote(id: Bytes): boolean;
    promoteAll(): number;
    pause(): boolean;
    resume(): boolean;
    dead(options?: { count?: number; after?: Bytes }): DeadTask[];
    replay(id: Bytes, options?: When): boolean;
    replayAll(options?: When): number;
    purge(id: Bytes): boolean;
    purgeAll(): number;
}

/** An attempt of a task. */
export interface Job<P extends string | Buffer = string> {
    readonly queue: string;
    readonly id: string;
    readonly payload: P[];
    /** The first value of the payload, as text. */
    readonly text: string;
    /** The first value, read as JSON once. Throws a SyntaxError if it is none. */
    readonly json: any;
    readonly due: Date;
    /** From 1 on. */
    readonly attempt: number;
    /** Further periods for which the call stands; the same in each attempt. */
    readonly missedPeriods: number;
    readonly token: string;
    /** Aborted when the task is not yours any more (its reason is a NotYours), when its time limit is over (a
     * TimeoutError), or when the worker ends (a GivenUp). */
    readonly signal: AbortSignal;
    readonly notYours: boolean;
    readonly givenUp: boolean;
    /** Acknowledges the job and runs a script of Redis, in one step. Resolves to the script's reply, with strings or
     * Buffers as the payload has them; the job is done then, whatever the handler does after that. The script has
     * its own KEYS and ARGV; in a cluster all keys are in the slot of the queue. Rejects with NotYours, and nothing
     * has happened, if the task is not yours any more; with ReplyLost if a lost reply leaves that open; with
     * EffectError if the script fails, and the job is done all the same. After any other error nothing has
     * happened. */
    ackThen(script: string, keys?: readonly Bytes[], args?: readonly (Bytes | number)[]): Promise<unknown>;
    /** Acknowledges the job in the transaction that is open on your connection to the file of its queue. When you
     * commit, the job is done; when you roll back, it is not acknowledged. Throws NotYours if the task is not yours any
     * more, and another TickwheelError if the file refuses the acknowledgement, or no transaction is open. */
    ackOn(db: AsyncConnection): Promise<void>;
    ackOn(db: SyncConnection): void;
}

export interface Counts {
    /** Acknowledged. */
    done: number;
    /** Failed. */
    failed: number;
    /** Failed for the last time: these count as failed too. */
    died: number;
    /** Given back: the attempt does not count. */
    back: number;
    /** Not yours any more when the handler had ended. */
    notYours: number;
}

export interface WorkerOptions<B extends boolean = boolean> {
    /** Shown by TW.GET. Default: host:pid. */
    name?: string;
    /** ms, 1 to 4294967295. Default: 30000. */
    lease?: number;
    /** Handlers at once, 1 to 10000. Default: 4. */
    jobs?: number;
    /** ms that handlers have after stop(). Default: no limit. */
    grace?: number;
    /** ms that one TW.TAKE waits, 1 to 3600000. Default: 5000. */
    block?: number;
    /** ms that the reply to any other command may take, 1 to 3600000. Default: 5000. */
    timeout?: number;
    /** Payloads are Buffers. Default: false, strings of UTF-8. */
    buffers?: B;
    /** As that of createCluster: other addresses than the cluster's nodes tell. */
    nodeAddressMap?: Record<string, Address> | ((address: string) => Address | undefined);
}

export interface Address {
    host: string;
    port: number;
}

type Payload<B extends boolean> = B extends true ? Buffer : string;

export class Worker<B extends boolean = false> extends EventEmitter {
    /** `client`: a client, a cluster, a file, or a function that makes a client for the present primary. */
    constructor(client: Source | File | Primary | (() => Source | Promise<Source>), options?: WorkerOptions<B>);
    readonly name: string;
    readonly counts: Counts;
    /** With `jobs` the queue has so many places of its own, besides those of the worker. An attempt that takes longer
     * than `timeout` ms, 1 to 2147483647, has failed; its handler, which nobody can end, sees job.signal. */
    task(queue: string, handler: (job: Job<Payload<B>>) => unknown, options?: { jobs?: number; timeout?: number }): this;
    /** Works until stop(), giveUp() or a signal. Rejects with a WorkerError that says what to do, when
     * the handlers that run have ended. */
    run(options?: { signals?: readonly NodeJS.Signals[] }): Promise<Counts>;
    /** For tests: calls the handlers for the tasks that are ready, one after the other, until a take finds none. A
     * task that waits stays, unless Queue.promote() lets it be ready. Resolves to the counts of this call, and may
     * be called again. With `throwErrors` it rejects with the first error of a handler that is neither a Retry, a
     * Back nor a Dead, when the attempt has failed. Rejects with an Error if a task is ready after `limit` attempts
     * (default: 1000), and with a WorkerError if a call to the server fails: none is repeated. */
    runReady(options?: { throwErrors?: boolean; limit?: number }): Promise<Counts>;
    /** Takes no more, and waits for the handlers that run. */
    stop(): Promise<Counts>;
    /** Tells the handlers to end. A second later it gives back the tasks whose handlers still run. */
    giveUp(): Promise<Counts>;

    /** failed: `next` is the time of the next attempt, or null if the reply was lost. trouble: a call has
     * failed, and is repeated in `wait` ms; without a listener it is a warning of the process. */
    on(event: "begin" | "done" | "back" | "notYours", listener: (job: Job<Payload<B>>) => void): this;
    on(event: "failed", listener: (job: Job<Payload<B>>, error: unknown, next: Date | null) => void): this;
    on(event: "dead", listener: (job: Job<Payload<B>>, error: unknown) => void): this;
    on(event: "trouble", listener: (error: Error, wait: number) => void): this;
    once(event: "begin" | "done" | "back" | "notYours", listener: (job: Job<Payload<B>>) => void): this;
    once(event: "failed", listener: (job: Job<Payload<B>>, error: unknown, next: Date | null) => void): this;
    once(event: "dead", listener: (job: Job<Payload<B>>, error: unknown) => void): this;
    once(event: "trouble", listener: (error: Error, wait: number) => void): this;
}

/** The attempt has failed; the next one shall come after `delay` ms, or at a Date. */
export class Retry extends Error {
    constructor(delay: number | Date, message?: string, options?: { cause?: unknown });
    readonly delay: number | Date;
}

/** It is too early: the task shall come again after `delay` ms, or at a Date. Nothing has failed, and the
 * attempt does not count. */
export class Back extends Error {
    constructor(delay: number | Date);
    readonly delay: number | Date;
}

/** No attempt can succeed: the task shall be dead now. */
export class Dead extends Error {
    constructor(message?: string, options?: { cause?: unknown });
}

/** A call has failed, in a server or in a file. The classes below tell why; this one itself stands for all other
 * reasons. */
export class TickwheelError extends Error {
    /** The error of node-redis, or a FileError, if there is one. */
    readonly cause?: unknown;
}

/** A dead task cannot be moved. replay() lets it wait again, and put() replaces it. */
export class TaskIsDead extends TickwheelError {}

/** The home does not take an argument, such as an id of 961 bytes. The message has the range. */
export class WrongArgument extends TickwheelError {}

/** The key of the queue holds something else. */
export class NotAQueue extends TickwheelError {}

/** The user may not do this, the server does not know the user, or the file may only be read. */
export class NoRights extends TickwheelError {}

/** Another version of Tickwheel has written the file, and that version can read it. */
export class WrongFormat extends TickwheelError {}

/** The home cannot do it now: it cannot be reached, a server is loading its data or lacks replicas, or others have
 * written to the file for longer than its `timeout`. The same call may succeed later. If the connection broke before
 * the reply, the call may have been done. */
export class Unavailable extends TickwheelError {}

/** Memory or the disk is full. Nothing has changed. */
export class Full extends Unavailable {}

/** Another server has the queue now, or shall have it: this one is a replica, or not the node of a cluster for it.
 * Nothing has changed. A client of Sentinels or of a cluster finds the other server. */
export class Elsewhere extends Unavailable {}

/** The reason of job.signal when the task is not yours any more: it was cancelled, or another worker may
 * have it. */
export class NotYours extends TickwheelError {
    constructor(queue: string, id: string);
}

/** A reply of the server was lost, and then its answer was "not yours". So the script of ackThen() has run once, or
 * not at all. */
export class ReplyLost extends NotYours {}

/** The script of ackThen() has failed. The job is done all the same, since its acknowledgement came first, and so
 * are the changes that the script made before. */
export class EffectError extends TickwheelError {}

/** The reason of job.signal when the time limit of the attempt is over. The attempt has failed by it. */
export class TimeoutError extends Error {}

/** The reason of job.signal when the worker ends. */
export class GivenUp extends Error {}

/** An error that does not go away has ended the worker; `cause` is the error of the server, or of the file. */
export class WorkerError extends TickwheelError {}

/** The cause of an error of a file, the same for each driver. */
export class FileError extends Error {
    /** SQLite's, for example SQLITE_BUSY; or TW_EREPLACED or TW_EFORMAT, as the library in C has it. */
    readonly code: string;
    readonly cause?: unknown;
}

export interface SentinelOptions {
    /** The name that the sentinels have for the primary. */
    name: string;
    sentinels: readonly Address[];
    /** createClient's options for the primary. */
    client?: object;
    /** createClient's options for the sentinels. */
    sentinel?: object;
    /** ms that a sentinel has for its answer. Default: 1000. */
    timeout?: number;
}

/** Returns a function that asks sentinels, and makes a client for the present primary. */
export function sentinelPrimary(createClient: (options?: any) => any,
    options: SentinelOptions): () => Promise<Source>;
