// SPDX-License-Identifier: MIT
// clients/node in a cluster: a queue in each of many slots, a slot that moves, a transaction. test_node.py
// runs it.
"use strict";
const assert = require("assert");
const { createCluster } = require("redis");
const { Queue, Worker, connect } = require("tickwheel");

const FAR = 3600000, SLOTS = 6;
const say = (line) => process.stdout.write(`${line}\n`);

/** The arguments of addCommand() before the words: node-redis 5 has one more than 4. */
function add(multi, key, words) {
    return multi.addCommand.length > 3 || /isReadonly/i.test(String(multi.addCommand))
        ? multi.addCommand(key, false, words) : multi.addCommand(key, words);
}

/** Resolves when `many` jobs are done. */
function done(worker, many) {
    return new Promise((resolve) => {
        worker.on("done", () => --many || resolve());
    });
}

async function main() {
    const early = new Worker(createCluster({ rootNodes: [{ url: process.env.TICKWHEEL_URL }] })).task("s", () => {});
    await assert.rejects(early.run(), /connect\(\) it before the worker runs/);
    const cluster = await connect(process.env.TICKWHEEL_URL.replace("redis:", "redis+cluster:"));
    const queues = Array.from({ length: SLOTS }, (_, i) => new Queue(cluster, `{${i}}:work`));

    await queues[0].put("a", "x", { delay: FAR });
    assert.deepEqual((await queues[0].get("a")).payload, ["x"]);
    const replies = await add(cluster.multi("{0}:"), "{0}:", queues[0].cancelWords("a")).exec();
    assert.deepEqual(replies, [[1]]);

    const far = new Worker(cluster, { block: 200, timeout: 1000 });
    let counted;
    far.task(queues[1].key, async (job) => {
        await assert.rejects(job.ackThen("return 1", ["{1}:n", "{2}:n"]),
            /the key '\{2\}:n' is in another slot than the queue '\{1\}:work': expected the same text in/);
        counted = await job.ackThen("return redis.call('INCR', KEYS[1])", ["{1}:n"]);
    });
    const first = done(far, 1), farEnded = far.run({ signals: [] });
    await queues[1].put("f", "x");
    await first;
    assert.equal((await far.stop()).done, 1);
    await farEnded;
    assert.equal(counted, 1);

    const ready = new Worker(cluster, { jobs: 1 });
    for (const { key } of queues) ready.task(key, () => {});
    for (const queue of queues) await queue.put("a", "x");
    assert.equal((await ready.runReady()).done, SLOTS);

    // Fewer places than slots, so that the loops take turns.
    const worker = new Worker(cluster, { jobs: 2, block: 200, timeout: 1000 });
    worker.on("trouble", () => {});
    for (const { key } of queues) worker.task(key, () => {});
    const ended = worker.run({ signals: [] }), all = done(worker, 4 * SLOTS);
    for (const queue of queues) for (const id of "abcd") await queue.put(id, "x");
    await all;
    say("worked");

    await new Promise((resolve) => process.stdin.once("data", resolve)); // The test moves a slot meanwhile.
    const again = done(worker, SLOTS);
    for (const queue of queues) await queue.put("e", "x");
    await again;
    assert.equal((await worker.stop()).done, 5 * SLOTS);
    await ended;
    await cluster.close();
    process.stdin.destroy();
    say("ok");
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
