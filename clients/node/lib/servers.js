// SPDX-License-Identifier: MIT
// Where a worker connects to. Each kind of servers has these methods:
//   groups(queues)        groups of queues that one TW.TAKE can name, as [{ slot, queues }]
//   find(slot)            a client, not connected yet, for the server that serves the slot
//   failed(slot, error)   takes notice of an error; true if find() leads to another server now
//   ask(slot, error, words, timeout)   sends words to the node that an ASK error names
//   scriptWords(job, script, keys, args)   the command that acknowledges a job and runs a script of its handler
//   driverOf(job, db)     the driver of a handler's connection to the file of the job
"use strict";
const check = require("./check");
const effect = require("./effect");
const { WorkerError } = require("./errors");
const { RAW, isReply, kindOf } = require("./replies");
const { checkClient, isCluster, isSentinel } = require("./queue");
const { File } = require("./file");
const { OneFile } = require("./filelink");
const { copyOf, end } = require("./line");
const { Primary } = require("./sentinel");
const { slotOf } = require("./slots");
const { within } = require("./time");

const NOT_CONNECTED = "the cluster client knows no node: connect() it before the worker runs";

/** Servers of Redis, which run scripts. */
class Servers {
    /** Throws a RangeError if a key of the script lies in another slot than the queue. */
    scriptWords(job, script, keys, args) {
        const names = effect.keysOf(keys);
        for (const key of names) {
            if (this.groups([job.queue, key]).length === 1) continue;
            throw new RangeError(`the key '${key}' is in another slot than the queue '${job.queue}': expected the ` +
                "same text in braces");
        }
        return effect.words(job.names, script, names, args);
    }

    driverOf(job) {
        throw new TypeError(`the home of '${job.id}' is a server: expected job.ackThen(script, keys, args)`);
    }
}

/** One server; or a primary that `make()` finds, whichever server that is at the time. */
class OnePrimary extends Servers {
    #make;

    constructor(make) {
        super();
        this.#make = make;
    }

    groups(queues) {
        return [{ slot: 0, queues }];
    }

    async find() {
        return copyOf(checkClient(await this.#make()));
    }

    failed() {
        return false;
    }
}

/** Splits `host:port`, in which the host may be an IPv6 address, or empty. */
function split(address) {
    const colon = address.lastIndexOf(":");
    return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}

/**
 * The nodes of a cluster. The worker follows MOVED by itself, since a library's cluster client shares one
 * connection per node, which a waiting TW.TAKE would block. An unknown owner is found by asking any node, which
 * names it.
 */
class ClusterNodes extends Servers {
    #cluster;
    #map;
    #sample = null; // a client of a node, for its user, password and TLS
    #known = new Set(); // addresses
    #owners = new Map(); // by slot
    #turn = 0;

    constructor(cluster, map) {
        super();
        this.#cluster = cluster;
        this.#map = map;
    }

    groups(queues) {
        const bySlot = new Map();
        for (const queue of queues) {
            const slot = slotOf(queue);
            bySlot.set(slot, [...(bySlot.get(slot) || []), queue]);
        }
        return [...bySlot].map(([slot, some]) => ({ slot, queues: some }));
    }

    async #look() {
        const masters = this.#cluster.masters || this.#cluster.getMasters();
        if (masters.length === 0 && this.#sample === null) throw new WorkerError(NOT_CONNECTED);
        for (const node of masters) {
            const client = await (node.client || this.#cluster.nodeClient(node));
            this.#sample = client;
            const { host, port } = client.options.socket;
            this.#known.add(node.address || `${host}:${port}`);
        }
    }

    #mapped(address) {
        const found = typeof this.#map === "function" ? this.#map(address) : this.#map && this.#map[address];
        return found || split(address);
    }

    async find(slot) {
        await within(this.#look(), 1000, "looking at the nodes").catch((error) => {
            if (this.#sample === null) throw error;
        });
        if (!this.#owners.has(slot)) {
            const known = [...this.#known];
            this.#owners.set(slot, known[this.#turn++ % known.length]);
        }
        return this.#clientOf(this.#owners.get(slot));
    }

    #clientOf(address) {
        const { host, port } = this.#mapped(address);
        return copyOf(this.#sample, { url: undefined, socket: { host, port } });
    }

    failed(slot, error) {
        if (kindOf(error) !== "MOVED") {
            if (!isReply(error) || kindOf(error) === "CLUSTERDOWN") this.#owners.delete(slot);
            return false;
        }
        const before = this.#owners.get(slot), owner = this.#named(error, before);
        this.#owners.set(slot, owner);
        this.#known.add(owner);
        return owner !== before;
    }

    /** Returns the address in a MOVED or ASK error. An empty host is that of the node that sent the error. */
    #named(error, from) {
        const { host, port } = split(error.message.split(" ")[2]);
        return `${host || split(from || [...this.#known][0]).host}:${port}`;
    }

    async ask(slot, error, words, timeout) {
        const client = this.#clientOf(this.#named(error, this.#owners.get(slot)));
        client.on("error", () => {});
        try {
            await within(client.connect(), timeout, "connecting");
            const asking = client.sendCommand(["ASKING"]);
            const reply = within(client.sendCommand(words, RAW), timeout, words[0]);
            await Promise.all([asking, reply]);
            return await reply;
        } finally {
            end(client);
        }
    }
}

/** Returns the servers that the argument of a Worker stands for. */
function serversOf(client, nodeAddressMap) {
    if (typeof client === "function") return new OnePrimary(client);
    if (client instanceof File) return new OneFile(client);
    if (client instanceof Primary) return new OnePrimary(client.find);
    checkClient(client);
    if (isCluster(client)) return new ClusterNodes(client, nodeAddressMap);
    if (isSentinel(client)) {
        throw new TypeError("the client is one of createSentinel: expected sentinelPrimary(...)");
    }
    const isPool = client.totalClients >= 0;
    if (isPool || typeof client.duplicate !== "function" || typeof client.connect !== "function") {
        throw new TypeError(`the client is ${check.shown(client)}: expected a client or a cluster, no pool`);
    }
    return new OnePrimary(() => client);
}

module.exports = { serversOf };
