#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// A shop in one SQLite file: shop.py in JavaScript, with npm's `sqlite3`. Both can work on one file. Debian's
// package is node-sqlite3, found with NODE_PATH=/usr/lib/x86_64-linux-gnu/nodejs (the folder of your
// processor). The text at the head of shop.py says why the order and its timeout change in one transaction, and
// how a new file gets the tables of the tasks.
//   shop.js place 42 --within 5000 [--file shop.db] | extend 42 --within 60000 | pay 42 | work
"use strict";
const { parseArgs, promisify } = require("util");
const sqlite3 = require("sqlite3");
const { File, Queue, Worker } = require("../../clients/node"); // if it is installed: require("tickwheel")

const QUEUE = "orders";

// Calls work(sql, db), and commits. A transaction belongs to its connection, so each transaction has a
// connection of its own. If the connection is closed before the commit, the transaction rolls back.
async function transaction(file, work) {
    const db = new sqlite3.Database(file), sql = promisify(db.all.bind(db));
    db.configure("busyTimeout", 5000);
    try {
        await sql("PRAGMA synchronous=FULL"); // a commit is on the disk when it returns
        await sql("CREATE TABLE IF NOT EXISTS orders(id INTEGER PRIMARY KEY, state TEXT NOT NULL)");
        await sql("BEGIN IMMEDIATE"); // waits for its turn to write
        const result = await work(sql, db);
        await sql("COMMIT");
        return result;
    } finally {
        db.close();
    }
}

async function place({ timeouts, file, order, within }) {
    await transaction(file, async (sql, db) => {
        await sql("INSERT INTO orders VALUES (?, 'placed')", order);
        await timeouts.on(db).put(`order:${order}`, order, { delay: within });
    });
    return `order ${order} is placed; it expires in ${within} ms unless it is paid`;
}

async function pay({ timeouts, file, order }) {
    const paid = await transaction(file, async (sql, db) => {
        await timeouts.on(db).cancel(`order:${order}`);
        return sql("UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'placed' RETURNING id", order);
    });
    return paid.length ? `order ${order} is paid` : `order ${order} waits for no payment`;
}

// Makes the time to pay longer, never shorter.
async function extend({ timeouts, order, within }) {
    const moved = await timeouts.move(`order:${order}`, { delay: within, condition: "gt" });
    if (moved === null) return `order ${order} waits for no payment`;
    return moved ? `order ${order} has ${within} ms from now` : `order ${order} has longer than that`;
}

// Runs a worker. Start as many as you like: each order goes to one of them. An order that is paid while its job
// is on the way stays paid. To expire twice does no harm.
async function work({ home, file }) {
    const worker = new Worker(home);
    worker.task(QUEUE, async (job) => {
        const expired = await transaction(file, (sql) => sql(
            "UPDATE orders SET state = 'expired' WHERE id = ? AND state = 'placed' RETURNING id", job.text));
        console.log(`order ${job.text} ${expired.length ? "was not paid: expired" : "waits for no payment"}`);
    });
    const { done, failed } = await worker.run();
    return `stopped; ${done} done, ${failed} failed`;
}

async function main() {
    const actions = { place, extend, pay, work };
    const { values, positionals: [action, order] } = parseArgs({
        allowPositionals: true,
        options: {
            file: { type: "string", default: "shop.db" },
            within: { type: "string", default: "5000" },
        },
    });
    if (!Object.hasOwn(actions, action ?? "")) {
        throw new Error(`${action}: expected place, extend, pay or work`);
    }
    if (action !== "work" && !/^\d+$/.test(order)) {
        throw new Error(`${action}: expected the number of an order`);
    }
    const { file, within } = values, home = await new File(file).connect(); // makes the tables of a new file
    const timeouts = new Queue(home, QUEUE);
    console.log(await actions[action]({ home, timeouts, file, order, within: Number(within) }));
    await home.close();
}

main().catch((error) => {
    console.error(`shop.js: ${error.message}`);
    process.exit(1);
});
