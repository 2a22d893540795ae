#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// A shop in one SQLite file: shop.py in JavaScript, with npm's `sqlite3`. Both can work on one file. Debian's
// package is node-sqlite3, found with NODE_PATH=/usr/lib/x86_64-linux-gnu/nodejs (the folder of your processor).
// The text at the head of shop.py says why the order and its timeout change in one transaction.
//   shop.js place 42 --within 5000 [--file shop.db] | extend 42 --within 60000 | pay 42 | expire
"use strict";
const { parseArgs, promisify } = require("util");
const sqlite3 = require("sqlite3");

const QUEUE = "orders";
const taskOf = (order) => `order:${order}`;

// The calls of a connection as promises. `run` returns the number of rows that the statement has changed.
class Shop {
    static open(path) {
        return new Promise((resolve, reject) => {
            const db = new sqlite3.Database(path, (error) => (error ? reject(error) : resolve(new Shop(db))));
        });
    }

    constructor(db) {
        this.db = db;
        db.configure("busyTimeout", 5000);
        this.all = promisify(db.all.bind(db));
        this.load = promisify(db.loadExtension.bind(db));
        this.close = promisify(db.close.bind(db));
    }

    run(sql, ...values) {
        return new Promise((resolve, reject) => {
            this.db.run(sql, values, function done(error) {
                if (error) reject(error);
                else resolve(this.changes);
            });
        });
    }

    // Makes the tables if the file is new.
    async prepare() {
        await this.run("PRAGMA synchronous=FULL"); // a commit is on the disk when it returns
        const there = await this.all("SELECT 1 FROM sqlite_schema WHERE name = 'tw_put'");
        if (there.length === 0) {
            await this.load(process.env.TICKWHEEL_SQLITE || "tickwheel_sqlite");
            await this.all("SELECT tw_install()");
        }
        await this.run("CREATE TABLE IF NOT EXISTS orders(id INTEGER PRIMARY KEY, state TEXT NOT NULL)");
    }

    // IMMEDIATE waits for its turn to write. A plain BEGIN that has read first may fail at once. A transaction
    // belongs to its connection, so a program that does several things at once opens a connection for each.
    async transaction(work) {
        await this.run("BEGIN IMMEDIATE");
        try {
            const result = await work();
            await this.run("COMMIT");
            return result;
        } catch (error) {
            await this.run("ROLLBACK");
            throw error;
        }
    }
}

async function place(shop, order, within) {
    await shop.transaction(async () => {
        await shop.run("INSERT INTO orders VALUES (?, 'placed')", order);
        await shop.run("INSERT INTO tw_put(queue, id, due_ms) VALUES (?, ?, ?)", QUEUE, taskOf(order),
            Date.now() + within);
    });
    console.log(`order ${order} is placed; it expires in ${within} ms unless it is paid`);
}

async function pay(shop, order) {
    const paid = await shop.transaction(async () => {
        const changed = await shop.run("UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'placed'", order);
        if (changed) await shop.run("INSERT INTO tw_cancel(queue, id) VALUES (?, ?)", QUEUE, taskOf(order));
        return changed;
    });
    console.log(paid ? `order ${order} is paid` : `order ${order} waits for no payment`);
}

// GT makes the time to pay longer, never shorter. RETURNING has a row only if the task was moved.
async function extend(shop, order, within) {
    const moved = await shop.all(
        "INSERT INTO tw_move(queue, id, due_ms, condition) VALUES (?, ?, ?, 'GT') RETURNING id",
        [QUEUE, taskOf(order), Date.now() + within]);
    console.log(moved.length ? `order ${order} has ${within} ms from now` : `order ${order} has longer than that`);
}

// Does the work of the due tasks, and removes them, in one transaction: if the program is killed, neither has
// happened. Use this, or a program that runs the queue's handler, but not both.
async function expire(shop) {
    const done = await shop.transaction(async () => {
        const due = await shop.all("SELECT CAST(id AS TEXT) AS task FROM tw_task WHERE queue = ? AND dead_ms IS NULL"
            + " AND place_ms <= ? AND NOT EXISTS (SELECT 1 FROM tw_queue WHERE name = queue AND paused <> 0)"
            + " AND NOT EXISTS (SELECT 1 FROM tw_meta WHERE restored & 1)"
            + " ORDER BY place_ms, revision LIMIT 100", [QUEUE, Date.now()]);
        for (const { task } of due) {
            await shop.run("UPDATE orders SET state = 'expired' WHERE id = ? AND state = 'placed'",
                task.replace("order:", ""));
            await shop.run("INSERT INTO tw_cancel(queue, id) VALUES (?, ?)", QUEUE, task);
        }
        return due;
    });
    for (const { task } of done) console.log(`${task.replace(":", " ")} was not paid: expired`);
}

function options() {
    const actions = { place, pay, extend, expire };
    const { values, positionals } = parseArgs({
        allowPositionals: true,
        options: {
            file: { type: "string", default: "shop.db" },
            within: { type: "string", default: "5000" },
        },
    });
    const [action, order] = positionals;
    if (!Object.hasOwn(actions, action ?? "")) {
        throw new Error(`${action}: expected ${Object.keys(actions).join(", ")}`);
    }
    const within = Number(values.within);
    if (action !== "expire" && !/^\d+$/.test(order)) throw new Error(`${action}: expected the number of an order`);
    if (!Number.isInteger(within)) throw new Error(`--within ${values.within}: expected milliseconds`);
    return { act: actions[action], order, within, file: values.file };
}

async function main() {
    const { act, order, within, file } = options();
    const shop = await Shop.open(file);
    try {
        await shop.prepare();
        await act(shop, order, within);
    } finally {
        await shop.close();
    }
}

main().catch((error) => {
    console.error(`shop.js: ${error.message}`);
    process.exit(1);
});
