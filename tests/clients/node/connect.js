// SPDX-License-Identifier: MIT
// connect() of clients/node with URLs of servers. test_node.py runs it with one of them, TICKWHEEL_URL, and a
// folder.
"use strict";
const assert = require("assert");
const { once } = require("events");
const net = require("net");
const { join } = require("path");
const test = require("node:test");
const { Elsewhere, Queue, Unavailable, Worker, connect } = require("tickwheel");

const URL_ = process.env.TICKWHEEL_URL, { hostname: host, port } = new URL(URL_);
let count = 0;

/** Puts a task through this home, and lets a worker of the same home do it. */
async function works(home) {
    const queue = new Queue(home, `{connect${count++}}:work`);
    assert.equal(await queue.put("a", "x"), "a");
    const worker = new Worker(home).task(queue.key, () => {}), counts = worker.run({ signals: [] });
    await once(worker, "done");
    await worker.stop();
    assert.equal((await counts).done, 1);
}

/** Closes a home in the way that all have. A call before that is done, and one behind it is an error. */
async function closes(home) {
    const queue = new Queue(home, `{connect${count++}}:work`), before = queue.put("a", "x");
    await home.close();
    assert.equal(await before, "a");
    await assert.rejects(queue.put("b", "x"), /clos/);
    await home.close();
}

/** A server that answers each command in this way. */
async function answering(answer) {
    const sockets = new Set(), server = net.createServer((socket) => {
        sockets.add(socket);
        socket.on("error", () => {});
        socket.on("data", (data) => {
            for (const command of data.toString().split(/(?=^\*\d)/m)) socket.write(answer(command));
        });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return { port: server.address().port, close() {
        server.close();
        for (const socket of sockets) socket.destroy();
    } };
}

const bulk = (text) => `$${text.length}\r\n${text}\r\n`;

test("a server, with a database and options of createClient", async () => {
    const home = await connect(`${URL_}/3`, { name: "shop" });
    await works(home);
    assert.match(await home.sendCommand(["CLIENT", "INFO"]), / name=shop .* db=3 /);
    await closes(home);
});

test("a Unix socket", async () => {
    const path = join(process.argv[2], "redis.sock");
    const server = net.createServer((socket) => {
        const other = net.connect(port, host);
        socket.pipe(other).pipe(socket);
        for (const each of [socket, other]) each.on("error", () => {});
    }).listen(path);
    await once(server, "listening");
    const home = await connect(`unix://${path}?db=2`);
    await works(home);
    assert.match(await home.sendCommand(["CLIENT", "INFO"]), / db=2 /);
    await closes(home);
    server.close();
});

test("the primary that sentinels name, and the next one after a failover", async () => {
    let now;
    const old = await answering(() => "-READONLY You can't write against a read only replica.\r\n");
    const sentinel = await answering((command) =>
        (command.includes("SENTINEL") ? `*2\r\n${bulk(host)}${bulk(String(now))}` : "+OK\r\n"));
    now = old.port;
    const home = await connect(`redis+sentinel://127.0.0.1:1,127.0.0.1:${sentinel.port}/my%20shop/0`,
        { client: { disableClientInfo: true } });
    const queue = new Queue(home, "{sentinel}:work");
    await assert.rejects(queue.put("a", "x"), Elsewhere);
    now = port;
    await works(home);
    await closes(home);
    for (const each of [old, sentinel]) each.close();
});

test("a home is closed while its server is away", async () => {
    const server = await answering(() => "+OK\r\n");
    const home = await connect(`redis://127.0.0.1:${server.port}`, { disableClientInfo: true });
    const lost = once(home, "error"), call = home.sendCommand(["GET", "a"]);
    server.close();
    await lost;
    await home.close();
    await call.catch(() => {}); // It may have been answered before.
    await assert.rejects(home.sendCommand(["PING"]), /clos/);
});

test("a server that is not there is an error at once", async () => {
    await assert.rejects(connect("redis://127.0.0.1:1"), /^Unavailable: .*ECONNREFUSED/);
    await assert.rejects(connect("redis+cluster://127.0.0.1:1"), Unavailable);
    await assert.rejects(connect("redis+sentinel://127.0.0.1:1/s"), /^Unavailable: no sentinel names a primary of 's'/);
    await assert.rejects(connect("unix:///none/redis.sock"), /^Unavailable: .*ENOENT/);
    await assert.rejects(connect(`redis://nobody:wrong@${host}:${port}`), /^NoRights: WRONGPASS/);
});
