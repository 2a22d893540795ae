// SPDX-License-Identifier: MIT
"use strict";
const { Kept } = require("./kept");
const { RAW, isReply, kindOf } = require("./replies");
const { within } = require("./time");

const noReconnection = () => new Error("the worker connects again by itself");
const ends = new WeakMap(); // an AbortController for each copy of a client, which ends all of its sockets

/**
 * Returns a copy of a client for a Line: it does not reconnect by itself, and keeps no commands while it is
 * offline. So a command fails when its connection does, and no command is sent behind the worker's back. The
 * time limits are the worker's too, because TW.TAKE is silent for as long as it waits.
 */
function copyOf(client, overrides = {}) {
    const sockets = new AbortController();
    const copy = client.duplicate({
        disableOfflineQueue: true,
        commandsQueueMaxLength: undefined,
        pingInterval: undefined,
        clientSideCache: undefined,
        ...overrides,
        socket: {
            ...(client.options && client.options.socket),
            socketTimeout: undefined,
            ...overrides.socket,
            reconnectStrategy: noReconnection,
            signal: sockets.signal,
        },
    });
    ends.set(copy, sockets);
    return copy;
}

/**
 * Ends a client's connection in any state. node-redis 4 tries once to reconnect before it asks the
 * strategy, and does not close the socket that it gets by then: so copies have a signal for that.
 */
function end(client) {
    try {
        const ended = client.destroy ? client.destroy() : client.disconnect();
        if (ended) ended.catch(() => {});
    } catch (error) { // It is closed already.
    }
    if (ends.has(client)) ends.get(client).abort();
}

/**
 * A connection to the server that `find()` names. It is made when a command needs it. When it fails, the
 * command fails, and the next command asks `find()` again.
 */
class Line {
    #find;
    #timeout;
    #connecting = new Kept(() => this.#connect());
    #client = null;
    #ids = new WeakMap();
    #closed = false;

    constructor(find, timeout) {
        this.#find = find;
        this.#timeout = timeout;
    }

    /** Returns the client, connected. */
    connected() {
        if (this.#closed) return Promise.reject(new Error("the connection was closed"));
        return this.#connecting.get();
    }

    async #connect() {
        const client = await within(this.#find(), 2 * this.#timeout, "finding the server");
        // node-redis 4 tries once to reconnect all the same, and the connection would have another id then. The
        // command that fails has the error.
        client.on("error", () => this.drop(client));
        try {
            await within(client.connect(), this.#timeout, "connecting");
        } catch (error) {
            end(client);
            throw error.socketError || error;
        }
        this.#client = client;
        return client;
    }

    /** Sends a command, and returns its reply. A reply that does not come in time ends the connection. */
    async call(words, wait = this.#timeout) {
        return this.callOn(await this.connected(), words, wait);
    }

    async callOn(client, words, wait = this.#timeout) {
        try {
            return await within(client.sendCommand(words, RAW), wait, words[0]);
        } catch (error) {
            if (!isReply(error)) this.drop(client);
            throw error;
        }
    }

    /** Returns the id that the server has given to this client's connection; null if the user may not ask. */
    async idOf(client) {
        if (!this.#ids.has(client)) {
            this.#ids.set(client, await this.callOn(client, ["CLIENT", "ID"]).catch((error) => {
                if (kindOf(error) === "NOPERM") return null;
                throw error;
            }));
        }
        return this.#ids.get(client);
    }

    /** Ends the connection, so that the next command makes another one; if given, only that of `client`. */
    drop(client = this.#client) {
        if (client === null || client !== this.#client) return;
        this.#client = null;
        this.#connecting.drop();
        end(client);
    }

    /** Ends the connection, also if it is being made. No other one is made. */
    close() {
        this.#closed = true;
        const connecting = this.#connecting.drop();
        if (this.#client === null && connecting) connecting.then(end, () => {});
        this.drop();
    }
}

module.exports = { Line, copyOf, end };
