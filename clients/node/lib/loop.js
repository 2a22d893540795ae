// SPDX-License-Identifier: MIT
"use strict";
const { Line } = require("./line");
const { endOf, isElsewhere } = require("./refusals");
const { kindOf } = require("./replies");
const { sleep, Waits } = require("./time");

const AGAIN_MS = 10; // between two CLIENT UNBLOCK, while TW.TAKE is on its way

/**
 * Takes tasks of queues that lie in one slot, and sends the commands about them. TW.TAKE waits on a line of
 * its own; all other commands go over the second line.
 */
class Loop {
    #crew; // the worker's: servers, settings, signals, and functions that tell the worker of events
    #queues;
    #slot;
    #block;
    #alone;
    #taker;
    #teller;
    #blocked = null; // the server's id of the connection on which TW.TAKE waits

    /** `alone` says that no other loop takes of these places. */
    constructor(crew, { slot, queues }, { places, alone, block }) {
        const find = () => crew.servers.find(slot);
        this.#crew = crew;
        this.#slot = slot;
        this.#queues = queues;
        this.#block = block;
        this.#alone = alone;
        this.places = places;
        this.#taker = new Line(find, crew.settings.timeout);
        this.#teller = new Line(find, crew.settings.timeout);
    }

    // Taking

    /**
     * Takes tasks until the worker stops. An error that does not go away ends it.
     *
     * Loops that share places do not wait with all of them. As long as a loop finds tasks, it takes as many as
     * there are places, without waiting. Otherwise it waits with one place.
     */
    async run() {
        const waits = new Waits();
        let found = false;
        while (!this.#crew.stopping.aborted) {
            const hurry = found && !this.#alone;
            const held = await this.places.hold(hurry || this.#alone ? Infinity : 1);
            const block = hurry ? 0 : this.places.block(this.#block);
            const rows = held ? await this.#tryTake(held, block, waits) : [];
            found = rows.length > 0;
            this.places.begin(rows.length, held - rows.length);
            for (const row of rows) this.#crew.took(this, row);
        }
    }

    /** Takes one task that is ready, without a wait, and a place for it. Returns undefined if there is none. */
    async takeOne() {
        const held = await this.places.hold(1), row = held ? await this.#takeReady() : undefined;
        this.places.begin(row ? 1 : 0, row ? 0 : held);
        return row;
    }

    async #takeReady() {
        for (;;) {
            try {
                return (await this.#take(1, 0))[0];
            } catch (error) {
                await this.#recover(this.#taker, error, new Waits(), this.#crew.over);
            }
        }
    }

    async #tryTake(count, block, waits) {
        const { stopping } = this.#crew;
        try {
            const rows = await this.#take(count, block);
            waits.reset();
            return rows;
        } catch (error) {
            if (!stopping.aborted) await this.#recover(this.#taker, error, waits, stopping);
            return [];
        }
    }

    async #take(count, block) {
        const { lease, name, timeout } = this.#crew.settings;
        const client = await this.#taker.connected();
        const id = await this.#taker.idOf(client);
        if (this.#crew.stopping.aborted) return [];
        const words = ["TW.TAKE", String(this.#queues.length), ...this.#queues,
            "LEASE", String(lease), "COUNT", String(count), ...(block ? ["BLOCK", String(block)] : []), "NAME", name];
        this.#blocked = block ? id : null;
        try {
            return await this.#taker.callOn(client, words, block + timeout) || [];
        } finally {
            this.#blocked = null;
        }
    }

    /** Ends the wait of TW.TAKE. Without the right to do so, the wait ends by itself. */
    async unblock() {
        try {
            while (this.#blocked !== null) {
                if (await this.#teller.call(["CLIENT", "UNBLOCK", String(this.#blocked)])) return;
                await sleep(AGAIN_MS, this.#crew.over);
            }
        } catch (error) { // NOPERM, or the server is away.
        }
    }

    // Telling

    /**
     * Sends a command until it has a reply. It is sent once in any case, and not again when the signal `until`
     * is aborted. Returns { reply, again }, or undefined without a reply. `again` says that the command was sent
     * before, and that its reply was lost.
     */
    async tell(words, until) {
        const waits = Waits.within(this.#crew.settings.lease);
        let sent = false, again = false;
        do {
            sent = false;
            try {
                const client = await this.#teller.connected();
                sent = true;
                return { reply: await this.#say(client, words), again };
            } catch (error) {
                again = again || (sent && kindOf(error) === "");
                await this.#recover(this.#teller, error, waits, until);
            }
        } while (!until.aborted);
        return undefined;
    }

    async #say(client, words) {
        try {
            return await this.#teller.callOn(client, words);
        } catch (error) {
            if (kindOf(error) !== "ASK") throw error;
            return await this.#crew.servers.ask(this.#slot, error, words, this.#crew.settings.timeout);
        }
    }

    // Errors

    /** Waits after an error that may go away. Throws the error that ends the worker. */
    async #recover(line, error, waits, until) {
        const end = endOf(error, this.#queues);
        if (end) throw end;
        if (until.aborted) return;
        if (isElsewhere(error)) line.drop();
        if (this.#crew.servers.failed(this.#slot, error)) return;
        const wait = waits.next();
        this.#crew.trouble(error, wait);
        await sleep(wait, until);
    }

    close() {
        this.#taker.close();
        this.#teller.close();
    }
}

module.exports = { Loop };
