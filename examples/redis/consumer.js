#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Lets unpaid orders expire: consumer.py in JavaScript, with npm's `redis` 4. Both can work side by side.
// Debian's package of the client is node-redis, found with NODE_PATH=/usr/share/nodejs. The text at the head of
// consumer.py says how entries are handled that come twice, or whose work fails, and why.
//   consumer.js [--url redis://127.0.0.1:7379] [--name node] [--idle 60000] [--tries 3] [--count 0]
"use strict";
const { parseArgs } = require("util");
const { createClient, WatchError } = require("redis");

const STREAM = "{shop}:unpaid", GROUP = "expiry", FAILURES = "{shop}:failed";
const REMEMBER_S = 24 * 3600; // For so long a note recognises a task that comes again.

// A server whose memory is full, or which has lost its disk or its replicas, refuses writes for a while. This
// does not count as a try of the entry.
const NO_WRITES = /^(OOM|READONLY|MISCONF|NOREPLICAS|CLUSTERDOWN|TRYAGAIN|EXECABORT)\b/;

// XACK comes last. So if XADD fails, the entry stays pending. If another consumer has finished the entry
// meanwhile, the entry is no longer pending, and the script does nothing.
const GIVE_UP = `
if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
`;

function options() {
    const text = (value) => ({ type: "string", default: value });
    const { values } = parseArgs({
        options: { url: text(process.env.REDIS_URL ?? "redis://127.0.0.1:7379"), name: text("node"),
            idle: text("60000"), tries: text("3"), count: text("0") },
    });
    const tries = Number(values.tries);
    if (!Number.isInteger(tries) || tries < 1) throw new Error(`--tries ${values.tries}: expected 1 or more`);
    return { ...values, idle: Number(values.idle), tries, count: Number(values.count) };
}

// The settings of a client. npm's redis knows redis:// and rediss://; the path of a Unix socket is a setting.
function server(url) {
    return url.startsWith("unix:") ? { socket: { path: url.replace(/^unix:(\/\/)?/, "") } } : { url };
}

async function makeGroup(client) {
    try {
        await client.xGroupCreate(STREAM, GROUP, "0", { MKSTREAM: true });
    } catch (error) {
        if (!error.message.startsWith("BUSYGROUP")) throw error; // the group exists already
    }
}

// Reads the note and the order, then changes both in one transaction. Fails with WatchError if either has
// changed between the two.
async function tryOnce(client, entry, task) {
    if (task.order === undefined) throw new Error("there is no field order");
    const order = `{shop}:order:${task.order}`;
    const note = `{shop}:done:${task["tw.id"]}:${task["tw.due"]}`;
    await client.watch([note, order]);
    const seen = await client.exists(note), state = await client.hGet(order, "state");
    const change = client.multi();
    if (!seen && state === "placed") change.hSet(order, "state", "expired");
    await change.set(note, entry, { EX: REMEMBER_S }).xAck(STREAM, GROUP, entry).exec();
    return seen ? "has come before" : state === "placed" ? "was not paid: expired" : `is ${state}`;
}

async function expire(client, entry, task) {
    for (;;) {
        try {
            // On a connection of its own, because WATCH holds for a whole connection.
            const outcome = await client.executeIsolated((own) => tryOnce(own, entry, task));
            console.log(`order ${task.order} ${outcome}`);
            return;
        } catch (error) {
            if (!(error instanceof WatchError)) throw error;
        }
    }
}

// Moves an entry to the Stream of failures, for a person to look at.
async function giveUp(client, entry, task, tries, error) {
    const failure = { "failed.entry": entry, "failed.tries": String(tries), "failed.error": error };
    const fields = [...Object.entries(failure), ...Object.entries(task)].flat();
    const moved = await client.eval(GIVE_UP, { keys: [STREAM, FAILURES], arguments: [GROUP, entry, ...fields] });
    console.log(moved ? `entry ${entry} is given up after ${tries} tries: ${error}`
        : `entry ${entry} failed, and another consumer has finished it`);
}

// Does the work of an entry that was handed out `tried` times. If the work fails and `tried` is `tries`,
// gives the entry up.
async function handle(client, { id, message, tried }, tries) {
    if (tried > tries) { // the consumers before this one died during the work
        await giveUp(client, id, message, tried - 1, "no consumer has finished it");
        return;
    }
    for (;;) {
        try {
            await expire(client, id, message);
            return;
        } catch (error) {
            if (!client.isReady) throw error; // the server is away: this is no try
            const reason = `${error.name}: ${error.message}`;
            if (NO_WRITES.test(error.message)) {
                console.log(`entry ${id} waits, as the server takes no writes: ${reason}`);
                await new Promise((resolve) => setTimeout(resolve, 1000));
                continue;
            }
            if (tried === tries) await giveUp(client, id, message, tries, reason);
            else console.log(`entry ${id} failed, try ${tried} of ${tries}: ${reason}`);
            return;
        }
    }
}

// Yields entries for ever: first the pending entries that are `idle` ms old, left by a consumer or failed,
// then a new entry. It takes one entry at a time, for the reason that consumer.py gives. `tried` is how often
// the group has handed the entry out. The reader waits for entries, so it needs a connection of its own.
async function* entries(client, reader, { name, idle }) {
    for (;;) {
        for (const left of await client.xPendingRange(STREAM, GROUP, "-", "+", 100, { IDLE: idle })) {
            // None if another consumer was faster.
            const claimed = await client.xClaim(STREAM, GROUP, name, idle, left.id);
            for (const entry of claimed) yield { ...entry, tried: left.deliveriesCounter + 1 };
        }
        const answer = await reader.xReadGroup(GROUP, name, { key: STREAM, id: ">" }, { COUNT: 1, BLOCK: 1000 });
        for (const entry of answer === null ? [] : answer[0].messages) yield { ...entry, tried: 1 };
    }
}

async function main() {
    const { url, count, tries, ...who } = options();
    const client = createClient(server(url));
    const reader = client.duplicate();
    for (const each of [client, reader]) each.on("error", fail);
    await Promise.all([client.connect(), reader.connect()]);
    await makeGroup(client);
    let done = 0;
    for await (const entry of entries(client, reader, who)) {
        await handle(client, entry, tries);
        if (++done === count) break;
    }
    await Promise.all([client.quit(), reader.quit()]);
}

function fail(error) {
    console.error(`consumer.js: ${error.message}`);
    process.exit(1);
}

main().catch(fail);
