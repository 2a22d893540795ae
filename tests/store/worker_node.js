#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The package for Node in the crowd of test_workers: a worker until its parent has gone. It notes in NOTES by
// which token it has done the work, before its answer.
//
// Usage: worker_node.js FILE LEASE_MS BUSY_MS NOTES
"use strict";
const { openSync, writeSync } = require("fs");
const { Back, Dead, Worker, connect } = require("../../clients/node");

const [path, lease, timeout, notes] = process.argv.slice(2);

async function main() {
    const done = openSync(notes, "a");
    const worker = new Worker(await connect(`sqlite:///${path}`, { timeout: Number(timeout) }),
        { lease: Number(lease), jobs: 2 });
    worker.on("trouble", () => {});
    worker.task("q", (job) => {
        const how = Math.random();
        if (how < 0.1) throw new Back(5);
        if (how < 0.2) throw new Error("no paper");
        if (how < 0.3) throw new Dead("no pen");
        writeSync(done, `${job.token}\n`);
    });
    process.stdin.on("end", () => process.exit(0)).resume();
    await worker.run({ signals: [] });
}

main().catch((error) => {
    console.error(`worker_node.js: ${error.stack}`);
    process.exit(1);
});
