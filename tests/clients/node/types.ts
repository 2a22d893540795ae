// SPDX-License-Identifier: MIT
// The types of clients/node. A line behind @ts-expect-error must be an error. test_node.py lets tsc read this
// file.
import tickwheel, { Queue, SyncQueue, Values, Worker, File, FileError, Retry, Dead, EffectError, WorkerError,
    NotYours, ReplyLost, TickwheelError, TaskIsDead, WrongArgument, NotAQueue, NoRights, WrongFormat, Unavailable,
    Full, Elsewhere, TimeoutError, connect, sentinelPrimary } from "tickwheel";
import type { Counts, DeadTask, Job, Row, Stats, Task, Words } from "tickwheel";

declare const client: {
    sendCommand(words: string[], options?: { a?: number }): Promise<string>;
    duplicate(overrides?: object): unknown;
    multi(): { addCommand(words: Array<string | Buffer>): unknown };
};

async function queues() {
    const queue = new Queue(client, "s");
    const bytes = new Queue(client, Buffer.from("s"), { buffers: true });
    const values = new Values("x", Buffer.from("y"));
    const id: string | null = await queue.put("a", values, { delay: 5, condition: "nx",
        maxLate: 5, backoff: { first: 1, factor: 2, max: 3 } });
    await queue.put(null, new Uint8Array(1), { at: new Date() });
    const task: Task | null = await queue.get("a"), raw: Task<Buffer> | null = await bytes.get("a");
    const first: string = task!.text, order: number = raw!.json.order;
    const texts: string[] = task!.payload, buffers: Buffer[] = raw!.payload, due: Date = task!.due;
    const moved: boolean | null = await queue.move("a", { at: 5, condition: "gt" });
    const count: (0 | 1 | 2)[] = await queue.cancel("a", "b");
    for await (const dead of queue.allDead()) {
        const one: DeadTask = dead;
        await queue.replay(one.id, { delay: 5 });
    }
    const words: Words = queue.putWords("a", "x");
    client.multi().addCommand(words);
    const next: Row | null = await queue.next(), rows: Date[] = [];
    for await (const row of queue.range({ first: new Date(), last: 5, count: 2 })) rows.push(row.next);
    const counts: number[] = await queue.forecast({ step: 5, steps: 2 }), stats: Stats | null = await queue.stats();
    const delivered: number | null = stats!.delivered, paused: boolean = stats!.paused;
    const sent: string | null = await queue.send("t", "a", { order: 42 }, { maxlen: 9, delay: 5 });
    await queue.send("t", null, new Map([[Buffer.from("a"), "x"]]));
    client.multi().addCommand(queue.sendWords("t", "a", ["x"], { kind: "list left", at: 5 }));

    await queue.put("a", { order: 42, to: ["ann"] });
    // @ts-expect-error: JSON has no undefined value
    await queue.put("a", undefined);
    // @ts-expect-error: either a delay or a time
    await queue.put("a", "x", { delay: 5, at: new Date() });
    // @ts-expect-error: a misspelt option
    await queue.put("a", "x", { dealy: 5 });
    // @ts-expect-error: only in small letters
    await queue.put("a", "x", { condition: "NX" });
    // @ts-expect-error: a backoff is whole
    await queue.put("a", "x", { backoff: { first: 1 } });
    // @ts-expect-error: nx is none of move's conditions
    await queue.move("a", { delay: 5, condition: "nx" });
    // @ts-expect-error: cancel needs an id
    await queue.cancel();
    // @ts-expect-error: an entry has fields
    await queue.send("t", "a", "x");
    // @ts-expect-error: a List is not trimmed
    await queue.send("t", "a", "x", { kind: "list", maxlen: 5 });
    // @ts-expect-error: the first time is first
    queue.range({ from: 5 });
    // @ts-expect-error: strings, unless the queue has buffers
    const wrong: Buffer[] = task!.payload;
    // @ts-expect-error: no client
    new Queue("redis://127.0.0.1", "s");
    return [id, first, order, texts, buffers, due, moved, count, next, rows, counts, delivered, paused, sent, wrong];
}

async function workers() {
    const nodeAddressMap = { "a:1": { host: "b", port: 2 } };
    const worker = new Worker(client, { jobs: 2, lease: 5000, name: "w", nodeAddressMap });
    worker.task("s", async (job: Job) => {
        const reply: unknown = await job.ackThen("return ARGV[1]", ["k", Buffer.from("l")], ["a", 5]);
        await job.ackThen("return 1").catch((one) => one instanceof ReplyLost || one instanceof EffectError);
        // @ts-expect-error: keys are an array
        await job.ackThen("return 1", "k");
        const text: string = job.text, signal: AbortSignal = job.signal, values: string[] = job.payload;
        const order: number = job.json.order;
        if (signal.reason instanceof TimeoutError) throw signal.reason;
        if (signal.reason instanceof NotYours) throw new Retry(5000, text, { cause: [values, reply] });
        throw new Dead(`never ${order}`);
    }, { jobs: 1, timeout: 5000 }).on("failed", (job, error, next) => [job.id, error, next?.getTime()])
        .on("trouble", (error, wait) => error.message + wait.toFixed());
    new Worker(client, { buffers: true }).task("s", (job) => job.payload[0].readUInt8(0));
    new Worker(sentinelPrimary(() => client, { name: "m", sentinels: [{ host: "a", port: 1 }] }));
    new tickwheel.Worker(async () => client);
    const counts: Counts = await worker.run({ signals: ["SIGTERM"] });
    const ready: Counts = await worker.runReady({ throwErrors: true, limit: 5 });
    const error = new WorkerError("w");

    // @ts-expect-error: the name of the option is jobs
    new Worker(client, { concurrency: 2 });
    // @ts-expect-error: a handler is a function
    worker.task("s", "handler");
    // @ts-expect-error: a time limit is a number of ms
    worker.task("s", () => {}, { timeout: "5s" });
    // @ts-expect-error: a delay is a number or a Date
    new Retry("5s");
    // @ts-expect-error: there is no such event
    worker.on("completed", () => {});
    // @ts-expect-error: the option is throwErrors
    worker.runReady({ raiseErrors: true });
    return [counts, ready, error.cause];
}

declare const quick: {
    prepare(sql: string): unknown; exec(sql: string): unknown; close(): void; pragma(sql: string): unknown;
};
declare const slow: {
    prepare(sql: string, callback?: () => void): unknown; exec(sql: string): unknown;
    close(callback?: () => void): void;
    all(sql: string, callback?: (error: Error | null, rows: unknown[]) => void): unknown;
    configure(option: "busyTimeout", value: number): void;
};

async function files() {
    const home: File = await connect("sqlite:///shop.db", { timeout: 100, driver: "sqlite3" });
    const queue = new Queue(home, "s"), bytes = new Queue(new File("shop.db"), "s", { buffers: true });
    const id: string | null = queue.on(quick).put("a", "x", { delay: 5 });
    const later: Promise<string | null> = queue.on(slow).put("a", "x");
    const task = bytes.on(quick).get("a"), first: Buffer | undefined = task?.payload[0];
    const mine: SyncQueue = new SyncQueue(quick, "s"), other: Queue = new Queue(slow, "s");
    const numbers: number[] = [mine.count(), mine.purgeAll(), ...mine.cancel("a"), ...mine.forecast()];
    const made: (string | null)[] = [mine.put(null, { order: 42 }), mine.put("b", new Values("x"))];
    const waiting: Row[] = [...mine.range()], tasks: number | undefined = mine.stats()?.tasks;
    new Worker(home).task("s", (job) => job.text);
    new Worker(home).task("s", async (job) => {
        const over: void = job.ackOn(quick), told: Promise<void> = job.ackOn(slow);
        // @ts-expect-error: a connection, and not the path of a file
        job.ackOn("shop.db");
        return [over, await told];
    });
    const primary = await connect("redis+sentinel://h/s", { timeout: 5 });
    new Worker(primary).task("s", () => new Queue(primary, "s").count());
    const server = await connect(process.env.URL || "redis://h", { name: "shop" });
    new Worker(server);
    const known: string = await server.hGet("a", "b");
    for (const each of [home, primary, server]) {
        const closed: Promise<void> = each.close();
        await closed;
    }

    // @ts-expect-error: there is no such driver
    await connect("sqlite:///shop.db", { driver: "sqlite4" });
    // @ts-expect-error: a misspelt option
    new File("shop.db", { timeuot: 5 });
    // @ts-expect-error: a queue of a connection that waits
    const wrong: Promise<number> = queue.on(quick).count();
    // @ts-expect-error: a file has no targets
    mine.send("t", "a", { x: 1 });
    // @ts-expect-error: JSON has no undefined value
    mine.put("a", undefined);
    // @ts-expect-error: no words
    mine.putWords("a", "x");
    return [id, later, first, other, numbers, made, waiting, tasks, known, wrong,
        (error: FileError) => error.code];
}

async function errors(error: TickwheelError) {
    const all: (new () => TickwheelError)[] = [TaskIsDead, WrongArgument, NotAQueue, NoRights, WrongFormat, Unavailable];
    const some: (new () => Unavailable)[] = [Full, Elsewhere], others: TickwheelError[] = [new WorkerError(),
        new EffectError(), new NotYours("q", "a")];
    try {
        await new Queue(client, "s").move("a", { delay: 5 });
    } catch (thrown) {
        if (thrown instanceof TaskIsDead) return thrown.message;
        if (thrown instanceof Full) return thrown.cause;
        if (thrown instanceof Unavailable) return thrown.stack;
    }
    if (error instanceof TaskIsDead) return error.message;
    if (error instanceof Full) return error.cause;
    return [all, some, others, error.name];
}

export { queues, workers, files, errors };
