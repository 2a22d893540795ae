// SPDX-License-Identifier: MIT
"use strict";
const check = require("./check");
const { isElsewhere } = require("./refusals");
const { text } = require("./replies");
const { Line, copyOf, end } = require("./line");
const { within } = require("./time");

const noReconnection = () => new Error("the next sentinel is asked");

async function askOne(createClient, { host, port }, name, options, timeout) {
    const own = { host, port, connectTimeout: timeout, reconnectStrategy: noReconnection };
    const client = createClient({ ...options, socket: { ...options.socket, ...own } });
    client.on("error", () => {});
    try {
        await within(client.connect(), timeout, `connecting to the sentinel ${host}:${port}`);
        const words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name];
        return await within(client.sendCommand(words), timeout, `the sentinel ${host}:${port}`);
    } finally {
        end(client);
    }
}

/**
 * Returns a function that asks sentinels for the present primary, and returns a client for it that is not
 * connected. A Worker takes the function instead of a client. `createClient` is that of npm's redis.
 */
function sentinelPrimary(createClient, options) {
    if (typeof createClient !== "function") {
        throw new TypeError(`createClient is ${check.shown(createClient)}: expected that of npm's redis`);
    }
    const known = ["name", "sentinels", "client", "sentinel", "timeout"];
    const { name, sentinels, client = {}, sentinel = {}, timeout = 1000 } = check.options(options, known);
    check.bytes("name", name);
    check.integer("timeout", timeout, 1, 2 ** 31 - 1);
    if (!Array.isArray(sentinels) || sentinels.length === 0) {
        throw new TypeError(`sentinels is ${check.shown(sentinels)}: expected [{ host, port }, ...]`);
    }
    const order = sentinels.slice();
    return async () => {
        const errors = [];
        for (const one of order.slice()) {
            try {
                const address = await askOne(createClient, one, name, sentinel, timeout);
                if (address === null) throw new Error(`${one.host}:${one.port} does not know '${name}'`);
                order.unshift(...order.splice(order.indexOf(one), 1)); // The next question goes to it first.
                const [host, port] = address.map(text);
                return createClient({ ...client, socket: { ...client.socket, host, port: Number(port) } });
            } catch (error) {
                errors.push(error.socketError || error);
            }
        }
        throw new Error(`no sentinel names a primary of '${name}': ${errors.map((e) => e.message).join("; ")}`);
    };
}

/** The client of a queue for the primary that `find` names: the function of a Worker. After a failover the call
 * that fails is the last one to the old primary. */
class Primary {
    #line;
    #calls = new Set(); // promises of those under way

    constructor(find, timeout) {
        this.find = find;
        this.#line = new Line(async () => copyOf(await find()), timeout);
    }

    async connect() {
        await this.#line.connected();
        return this;
    }

    async sendCommand(words) {
        const call = this.#line.call(words);
        this.#calls.add(call);
        try {
            return await call;
        } catch (error) {
            if (isElsewhere(error)) this.#line.drop();
            throw error;
        } finally {
            this.#calls.delete(call);
        }
    }

    async close() {
        await Promise.allSettled(this.#calls);
        this.#line.close();
    }
}

module.exports = { Primary, sentinelPrimary };
