#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Lets unpaid orders expire: consumer.py in JavaScript, with npm's `redis` 4; both can work side by side. Debian's
// package of it is node-redis, found with NODE_PATH=/usr/share/nodejs. What is done about entries that come twice, and
// why: there.
//   consumer.js [--port 7379] [--name node] [--idle 60000] [--count 0]
"use strict";
const { parseArgs } = require("util");
const { createClient, WatchError } = require("redis");

const STREAM = "{shop}:unpaid", GROUP = "expiry";
const REMEMBER_S = 24 * 3600; // How long after a task its second coming is recognised.

function options() {
    const text = (value) => ({ type: "string", default: value });
    const { values } = parseArgs({
        options: { port: text("7379"), name: text("node"), idle: text("60000"), count: text("0") },
    });
    return { ...values, idle: Number(values.idle), count: Number(values.count) };
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

// First what others have left, then what is new, for ever. The reader waits, so it is a connection of its own.
async function* entries(client, reader, { name, idle }) {
    for (;;) {
        const left = await client.xAutoClaim(STREAM, GROUP, name, idle, "0-0", { COUNT: 100 });
        yield* left.messages.filter((entry) => entry !== null);
        const answer = await reader.xReadGroup(GROUP, name, { key: STREAM, id: ">" }, { COUNT: 100, BLOCK: 1000 });
        if (answer !== null) yield* answer[0].messages;
    }
}

async function main() {
    const { port, count, ...who } = options();
    const client = createClient({ url: `redis://127.0.0.1:${port}` });
    const reader = client.duplicate();
    for (const each of [client, reader]) each.on("error", fail);
    await Promise.all([client.connect(), reader.connect()]);
    await makeGroup(client);
    let done = 0;
    for await (const { id, message } of entries(client, reader, who)) {
        await expire(client, id, message);
        if (++done === count) break;
    }
    await Promise.all([client.quit(), reader.quit()]);
}

function fail(error) {
    console.error(`consumer.js: ${error.message}`);
    process.exit(1);
}

main().catch(fail);
