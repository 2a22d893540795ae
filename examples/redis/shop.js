#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// A shop in Redis: shop.py in JavaScript, with npm's `redis`. Both can work on one server. Debian's package of
// the client is node-redis, found with NODE_PATH=/usr/share/nodejs. The text at the head of shop.py says why
// the order and its timeout change in one transaction, and explains the braces.
//   shop.js place 42 --within 5000 [--url redis://127.0.0.1:7379] | extend 42 --within 60000 | pay 42 | work
"use strict";
const { parseArgs } = require("util");
const { Queue, Worker, connect } = require("../../clients/node"); // if it is installed: require("tickwheel")

const QUEUE = "{shop}:timeouts";
const keyOf = (order) => `{shop}:order:${order}`;

// An order that is paid while its job is on the way stays paid. To expire twice does no harm.
const EXPIRE = `
local state = redis.call('HGET', KEYS[1], 'state')
if state == 'placed' then redis.call('HSET', KEYS[1], 'state', 'expired') end
return state
`;

async function place({ client, timeouts, order, within }) {
    await client.multi()
        .hSet(keyOf(order), "state", "placed")
        .addCommand(timeouts.putWords(`order:${order}`, order, { delay: within }))
        .exec();
    return `order ${order} is placed; it expires in ${within} ms unless it is paid`;
}

async function pay({ client, timeouts, order }) {
    const [, [cancelled]] = await client.multi()
        .hSet(keyOf(order), "state", "paid")
        .addCommand(timeouts.cancelWords(`order:${order}`))
        .exec();
    return `order ${order} is paid${cancelled === 1 ? "" : ", though its time was up"}`;
}

// Makes the time to pay longer, never shorter.
async function extend({ timeouts, order, within }) {
    const moved = await timeouts.move(`order:${order}`, { delay: within, condition: "gt" });
    if (moved === null) return `order ${order} waits for no payment`;
    return moved ? `order ${order} has ${within} ms from now` : `order ${order} has longer than that`;
}

// Runs a worker. Start as many as you like: each order goes to one of them.
async function work({ client }) {
    const worker = new Worker(client);
    worker.task(QUEUE, async (job) => {
        const state = await client.eval(EXPIRE, { keys: [keyOf(job.text)] });
        console.log(`order ${job.text} ${state === "placed" ? "was not paid: expired" : `is ${state}`}`);
    });
    const { done, failed } = await worker.run();
    return `stopped; ${done} done, ${failed} failed`;
}

async function main() {
    const actions = { place, extend, pay, work };
    const { values, positionals: [action, order] } = parseArgs({
        allowPositionals: true,
        options: {
            url: { type: "string", default: process.env.REDIS_URL ?? "redis://127.0.0.1:7379" },
            within: { type: "string", default: "5000" },
        },
    });
    if (!Object.hasOwn(actions, action ?? "")) {
        throw new Error(`${action}: expected place, extend, pay or work`);
    }
    if (action !== "work" && !order) throw new Error(`${action}: expected the number of an order`);
    const client = await connect(values.url), timeouts = new Queue(client, QUEUE);
    console.log(await actions[action]({ client, timeouts, order, within: Number(values.within) }));
    await client.close();
}

main().catch((error) => {
    console.error(`shop.js: ${error.message}`);
    process.exit(1);
});
