#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The worker of clients/node that the common tests drive. subject.py has its arguments, its output and the
// acts.
//   node.js --url URL [--cluster] | --sentinel HOST:PORT[,HOST:PORT] --service NAME
//           [--jobs N] [--lease MS] [--name NAME] [--grace MS] [--timeout MS] QUEUE...
"use strict";
const { createHash } = require("crypto");
const { existsSync, watch, writeSync } = require("fs");
const { dirname } = require("path");
const { parseArgs } = require("util");
const { Worker, Retry, Back, Dead, EffectError, NotYours, ReplyLost, connect, sentinelPrimary } =
    require("../../../clients/node");

const say = (...words) => writeSync(1, `${words.join(" ")}\n`);

function settings() {
    const text = { type: "string" };
    return parseArgs({
        allowPositionals: true,
        options: { url: text, cluster: { type: "boolean" }, sentinel: text, service: text, jobs: text,
            lease: text, name: text, grace: text, timeout: text },
    });
}

/** Returns the argument of the worker, and a function that closes it. */
async function servers({ url, cluster, sentinel, service }) {
    if (url && url.startsWith("sqlite:")) {
        const file = await connect(url, { driver: process.env.TICKWHEEL_NODE_DRIVER });
        return [file, () => file.close()];
    }
    const { createClient, createCluster } = require("redis");
    if (sentinel) {
        const sentinels = sentinel.split(",").map((one) => {
            const [host, port] = one.split(":");
            return { host, port: Number(port) };
        });
        return [sentinelPrimary(createClient, { name: service, sentinels }), () => {}];
    }
    if (!cluster) return [createClient({ url }), () => {}];
    const client = createCluster({ rootNodes: [{ url }] });
    client.on("error", () => {}); // The worker reports its own connections.
    await client.connect();
    return [client, () => client.disconnect()];
}

function digest(values) {
    const hash = createHash("sha1");
    values.forEach((value, i) => hash.update(i ? "\n" : "").update(value));
    return hash.digest("hex");
}

function untilExists(job, file) {
    return new Promise((resolve) => {
        const look = () => {
            if (!job.signal.aborted && !existsSync(file)) return;
            watcher.close();
            resolve();
        };
        const watcher = watch(dirname(file), look);
        job.signal.addEventListener("abort", look);
        look();
    });
}

async function acknowledge(job, [key, ...script]) {
    const { queue, id } = job;
    try {
        say("acked", queue, id, await job.ackThen(script.join(" "), [key]));
    } catch (error) {
        const word = error instanceof ReplyLost ? "lost" : error instanceof NotYours ? "void" : "broken";
        if (word !== "broken" || error instanceof EffectError) say(word, queue, id);
        throw error;
    }
}

/** In a file a payload is one value, with an act in each line. */
async function act(job) {
    const acts = job.payload.length > 1 ? job.payload : job.text.split("\n");
    const [verb, ...rest] = acts[Math.min(job.attempt, acts.length) - 1].toString().split(" ");
    if (verb === "show") say("shown", job.queue, job.id, digest(job.payload));
    if (verb === "fail") throw new Error(rest.join(" "));
    if (verb === "retry") throw new Retry(Number(rest[0]), rest.slice(1).join(" "));
    if (verb === "notyet" && !existsSync(rest[0])) throw new Back(Number(rest[1]));
    if (verb === "dead") throw new Dead(rest.join(" "));
    if (verb === "die") process.kill(process.pid, "SIGKILL");
    if (["until", "untilfail", "untilack"].includes(verb)) await untilExists(job, rest[0]);
    if (verb === "untilack") await acknowledge(job, rest.slice(1));
    if (verb.startsWith("ackthen")) await acknowledge(job, rest);
    if (verb === "ackthenfail") throw new Error("after its acknowledgement");
    if (job.givenUp) throw job.signal.reason;
    if (verb === "untilfail") throw new Error(rest.slice(1).join(" "));
}

async function handle(job) {
    const names = [job.queue, job.id, job.attempt];
    say("begin", ...names);
    try {
        await act(job);
    } finally {
        if (!job.givenUp) say("end", ...names);
    }
}

async function main() {
    const { values, positionals } = settings();
    const number = (name) => (values[name] === undefined ? {} : { [name]: Number(values[name]) });
    const [client, close] = await servers(values);
    const name = values.name === undefined ? {} : { name: values.name };
    const worker = new Worker(client, { buffers: true, ...name, ...number("jobs"), ...number("lease"),
        ...number("grace") });
    worker.on("notYours", (job) => say("not-yours", job.queue, job.id, job.attempt));
    worker.on("trouble", (error) => console.error(`node.js: ${error.message}`));
    for (const queue of positionals) worker.task(queue, handle, number("timeout"));
    process.on("SIGTERM", () => {}); // one that comes after the worker's end
    say("ready");
    const counts = await worker.run();
    await close();
    const { notYours, ...others } = counts; // the other programs print not_yours
    say("stopped", ...Object.entries({ ...others, not_yours: notYours }).map(([name, n]) => `${name}=${n}`));
}

main().catch((error) => {
    console.error(`node.js: ${error.message}`);
    process.exit(1);
});
