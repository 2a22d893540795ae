#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Lets unpaid orders expire: consumer.py in JavaScript, with npm's `redis` 4; both can work side by side. Debian's
// package of it is node-redis, found with NODE_PATH=/usr/share/nodejs. What is done about entries that come twice, or
// whose work fails, and why: there.
//   consumer.js [--port 7379] [--name node] [--idle 60000] [--tries 3] [--count 0]
"use strict";
const { parseArgs } = require("util");
const { createClient, WatchError } = require("redis");

const STREAM = "{shop}:unpaid", GROUP = "expiry", FAILURES = "{shop}:failed";
const REMEMBER_S = 24 * 3600; // How long after a task its second coming is recognised.

// A server that is full, or has lost its disk or its replicas, takes no writes for a while: that is not the entry's fault.
const NO_WRITES = /^(OOM|READONLY|MISCONF|NOREPLICAS|CLUSTERDOWN|TRYAGAIN|EXECABORT)\b/;

// XACK comes last, so a failure that cannot be written leaves the entry where it is. An entry that another consumer has
// finished meanwhile is not pending any more, and is no failure.
const GIVE_UP = `
if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
`;

function options() {
    const text = (value) => ({ type: "string", default: value });
    const { values } = parseArgs({
        options: { port: text("7379"), name: text("node"), idle: text("60000"), tries: text("3"), count: text("0") },
    });
    const tries = Number(values.tries);
    if (!Number.isInteger(tries) || tries < 1) throw new Error(`--tries ${values.tries}: expected 1 or more`);
    return { ...values, idle: Number(values.idle), tries, count: Number(values.count) };
}

async function makeGroup(client) {
    try {
        await client.xGroupCreate(STREAM, GROUP, "0", { MKSTREAM: true });
    } catch (error) {
        if (!error.message.startsWith("BUSYGROUP")) throw error; // which says that it is there already
    }
}

// One look and one change, all at once; the change fails with WatchError if something has moved since the look.
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
            // On a connection of its own, as what is watched is watched for a whole connection.
            const outcome = await client.executeIsolated((own) => tryOnce(own, entry, task));
            console.log(`order ${task.order} ${outcome}`);
            return;
        } catch (error) {
            if (!(error instanceof WatchError)) throw error;
        }
    }
}

// Moves an entry to the failures, for somebody to look at.
async function giveUp(client, entry, task, tries, error) {
    const failure = { "failed.entry": entry, "failed.tries": String(tries), "failed.error": error };
    const fields = [...Object.entries(failure), ...Object.entries(task)].flat();
    const moved = await client.eval(GIVE_UP, { keys: [STREAM, FAILURES], arguments: [GROUP, entry, ...fields] });
    console.log(moved ? `entry ${entry} is given up after ${tries} tries: ${error}`
        : `entry ${entry} failed, and another consumer has finished it`);
}

// Does the work of an entry that was handed out `tried` times, and gives it up when that was the last of `tries`.
async function handle(client, { id, message, tried }, tries) {
    if (tried > tries) { // by consumers that did not live to say so
        await giveUp(client, id, message, tried - 1, "no consumer has finished it");
        return;
    }
    for (;;) {
        try {
            await expire(client, id, message);
            return;
        } catch (error) {
            if (!client.isReady) throw error; // the server is away: that is not the entry's fault
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

// Those that were left or have failed, then a new one, for ever, and one at a time, for the reason that consumer.py gives;
// `tried` is how often the group has handed an entry out. The reader waits, so it is a connection of its own.
async function* entries(client, reader, { name, idle }) {
    for (;;) {
        for (const left of await client.xPendingRange(STREAM, GROUP, "-", "+", 100, { IDLE: idle })) {
            // None when another consumer was faster.
            const claimed = await client.xClaim(STREAM, GROUP, name, idle, left.id);
            for (const entry of claimed) yield { ...entry, tried: left.deliveriesCounter + 1 };
        }
        const answer = await reader.xReadGroup(GROUP, name, { key: STREAM, id: ">" }, { COUNT: 1, BLOCK: 1000 });
        for (const entry of answer === null ? [] : answer[0].messages) yield { ...entry, tried: 1 };
    }
}

async function main() {
    const { port, count, tries, ...who } = options();
    const client = createClient({ url: `redis://127.0.0.1:${port}` });
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
