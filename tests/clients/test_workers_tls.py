# SPDX-License-Identifier: MIT
"""Workers of each language over TLS, by the URL alone: rediss://. connect() of Python and Node, which ask
sentinels and nodes of a cluster over TLS."""
import inspect
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from harness import HOST, PATIENCE, ROOT, SLOTS, Broken, Cluster, free_port, wait_until
from redis.asyncio.cluster import RedisCluster
from situations import put
from subject import NOTHING, languages, node, node_path
# pylint: disable=unused-import
from test_workers import start


@pytest.fixture(params=languages())
def language(request):
    return request.param


@pytest.fixture
def certified(fleet, tmp_path, monkeypatch):
    """Options of a server that has a certificate, which the programs trust."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=a server",
                    "-addext", f"subjectAltName=IP:{HOST}"], capture_output=True, check=True, timeout=PATIENCE)
    for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"):
        monkeypatch.setenv(name, str(certificate))
    return {"tls_cert_file": certificate, "tls_key_file": key, "tls_ca_cert_file": certificate,
            "tls_auth_clients": "no"}


def with_tls(fleet, **options):
    """A server with a port for TLS, and that port."""
    port = free_port()
    server = fleet.server(start=False, tls_port=port, **options)
    try:
        server.start()
    except Broken:
        if "tls-port" in server.log():
            pytest.skip("this server is built without TLS")
        raise
    return server, port


def test_a_worker_over_tls(fleet, certified, start, queue):
    """All of its connections have TLS, also those that it makes when the server was restarted."""
    server, port = with_tls(fleet, appendonly="yes", **certified)
    subject = start(queue, url=f"rediss://{HOST}:{port}", jobs=2)
    for name in ("before", "after"):
        r = server.client()
        put(r, queue, name, payload=("ok",))
        subject.wait("end", queue, name, 1)
        wait_until(lambda found=r: not found.exists(queue), subject.story)
        server.kill()
        server.start()
    assert subject.stop() == {**NOTHING, "done": 2}


# Each program puts a task into each queue, and does both: it prints their number.

PYTHON = """
import sys, tickwheel
home = tickwheel.connect(sys.argv[1])
worker = tickwheel.Worker(home)
for key in sys.argv[2:]:
    tickwheel.Queue(home, key).put("a", "x")
    worker.task(key)(lambda job: None)
print(worker.run_ready(raise_errors=True).done)
"""
ASYNCIO = """
import asyncio, sys, tickwheel.aio as tickwheel
async def work(job):
    pass
async def main():
    home = tickwheel.connect(sys.argv[1])
    worker = tickwheel.Worker(home)
    for key in sys.argv[2:]:
        await tickwheel.Queue(home, key).put("a", "x")
        worker.task(key)(work)
    print((await worker.run_ready(raise_errors=True)).done)
asyncio.run(main())
"""
NODE = """
const { Queue, Worker, connect } = require(process.env.TICKWHEEL_PACKAGE);
const [, url, ...keys] = process.argv;
(async () => {
    const home = await connect(url), worker = new Worker(home);
    for (const key of keys) {
        await new Queue(home, key).put("a", "x");
        worker.task(key, () => {});
    }
    console.log((await worker.runReady({ throwErrors: true })).done);
    process.exit();
})();
"""
PROGRAMS = {"python": [sys.executable, "-B", "-c", PYTHON], "asyncio": [sys.executable, "-B", "-c", ASYNCIO],
            "node": [node()[0], "-e", NODE]}


def works(url, *keys, programs=tuple(PROGRAMS)):
    """Lets each of these programs use this home."""
    env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "clients/python"),
           "NODE_PATH": ":".join(node_path()),
           "TICKWHEEL_PACKAGE": os.path.join(ROOT, "clients/node")}
    for name in programs:
        done = subprocess.run([*PROGRAMS[name], url, *keys], env=env, capture_output=True, text=True,
                              check=False, timeout=PATIENCE)
        assert (done.stdout, done.returncode) == (f"{len(keys)}\n", 0), (name, url, done)


@pytest.mark.library
@pytest.mark.long(only=True)
def test_sentinels_over_tls(fleet, certified):
    """The sentinel has a certificate too, and names the port for TLS."""
    _, port = with_tls(fleet, tls_replication="yes", **certified)
    own = free_port()
    sentinel = fleet.sentinel(SimpleNamespace(port=port), tls_port=own, tls_replication="yes", **certified)
    wait_until(sentinel.answers)
    works(f"rediss+sentinel://{HOST}:{own}/{sentinel.name}", "a", "b")


@pytest.mark.library
@pytest.mark.long(only=True)
def test_a_cluster_over_tls_and_without(fleet, certified):
    """A queue on each node, of which the URL names the first."""
    made = [with_tls(fleet, cluster=True, tls_cluster="yes", tls_replication="yes", **certified)
            for _ in range(2)]
    (first, port), (second, _) = made
    half = SLOTS // 2
    for epoch, (one, slots) in enumerate([(first, (0, half - 1)), (second, (half, SLOTS - 1))], 1):
        one.once("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        one.once("CLUSTER", "ADDSLOTSRANGE", *slots)
    second.once("CLUSTER", "MEET", HOST, port)
    wait_until(lambda: all(len(Cluster.known(one)) == 2 and Cluster.state(one)["cluster_state"] == "ok"
                           for one, _ in made))
    keys = "a", "b"
    assert {first.once("CLUSTER", "KEYSLOT", key) < half for key in keys} == {True, False}
    with_asyncio = "ssl" in inspect.signature(RedisCluster).parameters  # in redis-py 4.4 and later
    works(f"rediss+cluster://{HOST}:{port}", *keys,
          programs=["python", "node", *(["asyncio"] if with_asyncio else [])])
    works(f"redis+cluster://{HOST}:{first.port}", *keys)
