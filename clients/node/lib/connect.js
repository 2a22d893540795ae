// SPDX-License-Identifier: MIT
// The address of a home of tasks, as a URL.
"use strict";
const { File } = require("./file");
const { end } = require("./line");
const { translated } = require("./refusals");
const { Primary, sentinelPrimary } = require("./sentinel");
const { within } = require("./time");

const SENTINEL_PORT = 26379;
const TIMEOUT_MS = 5000; // A server that hangs is none.
const SCHEMES = "expected redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster or " +
    "sqlite, and :// behind it";

/** Returns npm's redis. A program that uses only files needs no such package. */
function redisOf(url) {
    try {
        return require("redis");
    } catch (error) {
        if (error.code !== "MODULE_NOT_FOUND") throw error;
        throw new Error(`'${url}' needs npm's redis: npm install redis, Debian's node-redis, or use a file, ` +
            "sqlite:///FILE", { cause: error });
    }
}

/** Gives a client of node-redis 4 the close() that other homes and later versions have: it closes the connection when
 * the calls so far are done, behind which a PING comes back. It does not wait for a server that is away. */
function closable(client) {
    async function close() {
        const nodes = await Promise.all(client.masters ? client.masters.map((node) => node.client) : [client]);
        const last = Promise.allSettled(nodes.map((node) => node && node.isReady && node.ping()));
        await within(last, TIMEOUT_MS, "closing").catch(() => {});
        end(client);
    }
    return client.close ? client : Object.defineProperty(client, "close", { value: close });
}

/** Connects a client. The first failure is an error here, while node-redis would try for ever. Later on it
 * connects again by itself: then the calls that fail have the errors. */
async function connected(client) {
    const failure = new Promise((_, reject) => client.on("error", reject));
    try {
        await within(Promise.race([client.connect(), failure]), TIMEOUT_MS, "connecting");
        return closable(client);
    } catch (error) {
        end(client);
        throw translated(error.socketError || error);
    }
}

/** Connects a file, or the client of a primary. */
async function opened(home) {
    try {
        return await home.connect();
    } catch (error) {
        throw translated(error);
    }
}

/** Returns the parts of USER:PASSWORD@HOSTS/REST that are there. */
function partsOf(address) {
    const [, user, hosts, rest] = /^(?:([^@]*)@)?([^/]*)(?:\/(.*))?$/.exec(address);
    const [username, password] = (user || "").split(":").map(decodeURIComponent);
    const who = { ...(username ? { username } : {}), ...(password ? { password } : {}) };
    return { who, hosts, rest: decodeURIComponent(rest || "") };
}

function database(url, text) {
    if (/^\d*$/.test(text)) return text ? { database: Number(text) } : {};
    throw new RangeError(`the database of ${url} is '${text}': expected a number`);
}

/** Reads HOST, HOST:PORT or [IPV6]:PORT. */
function sentinelOf(text) {
    const [, six, host, port] = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(text) || [];
    if (six || host) return { host: six || host, port: Number(port || SENTINEL_PORT) };
    throw new RangeError(`the sentinel is '${text}': expected HOST:PORT`);
}

function ofServer(url, options) {
    return connected(redisOf(url).createClient({ url, ...options }));
}

function ofSocket(url, address, options) {
    const { who, hosts, rest } = partsOf(address);
    const [path, query] = rest.split("?");
    if (hosts || !path) throw new RangeError(`the url is '${url}': expected unix:///PATH, or unix:///PATH?db=1`);
    const db = database(url, new URLSearchParams(query).get("db") || "");
    return connected(redisOf(url).createClient({ ...who, ...db, socket: { path: `/${path}` }, ...options }));
}

async function ofCluster(url, address, tls, { defaults = {}, ...options }) {
    const { who } = partsOf(address), rootNodes = [{ url: `${tls ? "rediss" : "redis"}://${address}` }];
    let isThere = false;
    // node-redis 4.5 would try to reach this node for ever, also when its cluster is given up.
    const reconnectStrategy = (tries) => (isThere ? Math.min(50 * tries, 500) : new Error("it is not there"));
    const socket = { ...(tls ? { tls } : {}), reconnectStrategy, ...defaults.socket };
    const cluster = redisOf(url).createCluster({ rootNodes, ...options,
        defaults: { ...who, ...defaults, socket } });
    await connected(cluster);
    isThere = true;
    return cluster;
}

function ofSentinels(url, address, tls, { client = {}, sentinel = {}, ...options }) {
    const { who, hosts, rest } = partsOf(address), [name, db = ""] = rest.split("/");
    if (!hosts || !name) {
        throw new RangeError(`the url is '${url}': expected redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB`);
    }
    const safe = tls ? { socket: { tls } } : {};
    const find = sentinelPrimary(redisOf(url).createClient, {
        name, sentinels: hosts.split(",").map(sentinelOf), ...options,
        client: { ...safe, ...who, ...database(url, db), ...client }, sentinel: { ...safe, ...sentinel },
    });
    return opened(new Primary(find, TIMEOUT_MS));
}

function ofFile(url, address, options) {
    if (!/^\/[^?]+$/.test(address)) {
        throw new RangeError(`the url is '${url}': expected sqlite:///FILE, or sqlite:////FOLDER/FILE`);
    }
    return opened(new File(decodeURIComponent(address.slice(1)), options));
}

/** Resolves to the client of this home, connected. `options` are those of the client. */
async function connect(url, options = {}) {
    const [, scheme, address] = /^([^:]*):\/\/(.*)$/s.exec(url) || [null, String(url).split(":")[0], ""];
    const [, secure, way] = /^redis(s?)(?:\+(sentinel|cluster))?$/.exec(scheme) || [];
    if (scheme === "sqlite") return ofFile(url, address, options);
    if (scheme === "unix") return ofSocket(url, address, options);
    if (secure === undefined || !address) throw new RangeError(`the url's scheme is '${scheme}': ${SCHEMES}`);
    if (way === "sentinel") return ofSentinels(url, address, secure === "s", options);
    return way === "cluster" ? ofCluster(url, address, secure === "s", options) : ofServer(url, options);
}

module.exports = { connect };
