# SPDX-License-Identifier: MIT
"""The blocks of docs/python.md, run in their order. Where the page lets a worker run until a signal, the test
stops it when its queues are empty. Both kinds of clients have a cluster here, since the page needs one."""
import asyncio
import contextlib
import io
import os
import re

import pytest
import redis
import redis.asyncio
from harness import HOST, PATIENCE, ROOT, Fleet
from python_package import emptied, new_file

import tickwheel
import tickwheel.aio

PAGE = os.path.join(ROOT, "docs", "python.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORTS = {"7379": "server", "26379": "sentinel", "7000": "node"}


def blocks():
    with open(PAGE, encoding="utf-8") as file:
        return BLOCK.findall(file.read())


def empty(port, worker):
    """Waits until the queues of a worker have no task."""
    client = redis.Redis(host=HOST, port=port)
    if isinstance(worker._settings.client, tickwheel.File):
        client = worker._settings.client
    for key in worker._settings.handlers:
        emptied(tickwheel.Queue(client, key))
    client.close()


def run(port, worker):
    worker.start()
    empty(port, worker)
    worker.stop()
    return worker.join(PATIENCE)


async def run_async(port, worker):
    going = asyncio.create_task(worker.run())
    await asyncio.to_thread(empty, port, worker)
    worker.stop()
    return await going


@pytest.fixture(scope="module")
def cluster():
    made = Fleet()
    yield made.cluster(3)
    made.close()


@pytest.fixture
def ports(fleet, cluster):
    """A server, a Sentinel that watches it, and a node of a cluster."""
    server = fleet.server()
    return {"server": server.port, "sentinel": fleet.sentinel(server, name="mymaster").port,
            "node": cluster.nodes[0].port}


def ready(code, ports):
    for port, name in PORTS.items():
        code = re.sub(rf"\b{port}\b", str(ports[name]), code)
    return code.replace("await worker.run()", "await run_async(worker)").replace("worker.run()", "run(worker)")


def test_the_page(ports, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("shop.db", "test.db"):
        new_file(tmp_path, name)
    space = {"run": lambda worker: run(ports["server"], worker),
             "run_async": lambda worker: run_async(ports["server"], worker), "__name__": "page"}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for code in blocks():
            exec(compile(ready(code, ports), PAGE, "exec"), space)  # pylint: disable=exec-used
    client = redis.Redis(host=HOST, port=ports["server"], decode_responses=True)
    assert client.hgetall("order:43") == client.hgetall("order:44") == {"state": "expired"}
    assert said.getvalue().splitlines() == [
        '{"order":42,"to":["ann"]} [\'ann\']',
        "eve 1 no such address", "no address", "True", "paid so far: 7",
        "Counts(done=0, failed=0, died=0, back=0, not_yours=0)",
        "Counts(done=1, failed=0, died=0, back=0, not_yours=0)", "to ann@example.org 1",
        "the mail server is away", "the task is dead: expected a replay, or a put in its place"]
    assert client.get("{shop}:paid") == "7"
    assert space["db"].execute("SELECT paid FROM accounts").fetchall() == [(8,)]
    assert space["mails"].get("order:47").text == "47"
    for name, key, id in (("shop", "orders", "order:45"), ("cluster", "{shop}:orders", "order:46")):
        works(space[name], key, id)
        space[name].close()


def works(client, key, id):
    """A worker with this client does the one task."""
    worker, seen = tickwheel.Worker(client), []
    worker.add(lambda job: seen.append(job.id), key)
    with worker:
        emptied(tickwheel.Queue(client, key))
    assert seen == [id]


def test_a_cluster(cluster, queue):
    """Each call finds its node, and a worker has queues of all of them, with fewer places than nodes."""
    client = redis.RedisCluster(host=HOST, port=cluster.nodes[0].port, socket_timeout=10)
    works = [tickwheel.Queue(client, f"{{{tag}}}:{queue}") for tag in ("a", "b", "c")]
    assert len({client.get_node_from_key(work.key).port for work in works}) == 3
    for work in works:
        work.put("a", "x", delay=60)
        assert work.move("a", delay=50) and work.get("a").text == "x" and work.next()[0] == "a"
        assert work.count() == 1 and len(list(work.scan())) == 1 and work.pause() and work.resume()
        assert work.promote("a") and work.promote_all() == 0 and work.dead() == [] and work.purge_all() == 0
        assert not work.replay("a")
    pipe = client.pipeline()
    for work in works:
        work.on(pipe).put("b", "x")
    assert pipe.execute() == [b"b"] * 3
    worker, done = tickwheel.Worker(client, jobs=2, lease=30), []

    @worker.task(*(work.key for work in works))
    def handler(job):
        with pytest.raises(ValueError, match="key '{d}' is in another slot than the queue '{.}:.*same text in"):
            job.ack_then("return 1", [job.queue[:3] + "x", "{d}"])
        done.append((job.queue, job.ack_then("return ARGV[1]", [job.queue[:3] + "x"], [job.id]).decode()))

    with worker:
        for work in works:
            emptied(work)
    assert sorted(done) == sorted((work.key, id) for work in works for id in "ab")
    test, last = tickwheel.Worker(client), works[2].key
    test.add(lambda job: works[0].put("d", "x") if job.queue == last else None, *(work.key for work in works))
    for work in works:
        work.put("c", "x")
    assert test.run_ready() == tickwheel.Counts(done=4) and works[0].count() == 0
    client.close()


def test_a_cluster_with_asyncio(cluster):
    async def test():
        port = cluster.nodes[0].port
        async with redis.asyncio.RedisCluster(host=HOST, port=port, socket_timeout=10) as client:
            works = [tickwheel.aio.Queue(client, f"{{{tag}}}:aio") for tag in "abc"]
            worker, done = tickwheel.aio.Worker(client, jobs=2), []

            @worker.task(*(work.key for work in works))
            async def handler(job):
                with pytest.raises(ValueError, match="key '{d}' is in another slot than the queue"):
                    await job.ack_then("return 1", ["{d}"])
                done.append((await job.ack_then("return KEYS[1]", [job.queue])).decode())
                if len(done) == 3:
                    worker.stop()

            for work in works:
                await work.put("a", "x", delay=0.1)
                assert (await work.get("a")).text == "x" and await work.count() == 1
            assert await worker.run() == tickwheel.Counts(done=3)
            assert sorted(done) == [work.key for work in works]

            async def fail(job):
                raise OSError("away")

            test = tickwheel.aio.Worker(client)
            test.add(fail, *(work.key for work in works))
            for work in works:
                await work.put("b", "x", backoff=(60,))
            with pytest.raises(OSError):  # Of the first slot: the links to the others are not open yet.
                await test.run_ready(raise_errors=True)
            assert await test.run_ready() == tickwheel.Counts(failed=2)
    asyncio.run(asyncio.wait_for(test(), PATIENCE))
