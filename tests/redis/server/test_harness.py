# SPDX-License-Identifier: MIT
"""Tests of harness.py: a server that ends leaves nothing behind, and comes back where others look for it."""
import contextlib
import re
import socket
import threading

from harness import HOST, PATIENCE, bindable, wait_until
from workers import thread_states


@contextlib.contextmanager
def taken(port):
    """Holds a port so that no server can bind it. Ended connections to it do not hinder that."""
    with contextlib.closing(socket.socket()) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((HOST, port))
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        yield


def test_a_server_that_comes_back_waits_for_its_port(fleet):
    server = fleet.server()
    port = server.port
    server.kill()
    wait_until(lambda: bindable(port))
    with taken(port):
        coming = threading.Thread(target=server.start, daemon=True)
        coming.start()
        wait_until(lambda: "Address already in use" in server.log())
    coming.join(PATIENCE)
    assert server.port == port and server.once("PING")


def test_a_new_server_takes_another_port(fleet):
    """Nobody knows its port yet."""
    server = fleet.server(start=False)
    port = server.port
    with taken(port):
        server.start()
        assert server.port != port and server.once("PING")


def is_gone(pid):
    try:
        return set(thread_states(pid)) <= {"Z"}
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_no_child_outlives_its_server(fleet):
    server = fleet.server(appendonly="yes", rdb_key_save_delay=60000000)
    r = server.client()
    r.set("a", 1)
    r.bgrewriteaof()
    wait_until(lambda: "rewriting started by pid" in server.log())
    child = int(re.search(r"rewriting started by pid (\d+)", server.log())[1])
    assert not is_gone(child)
    server.kill()
    wait_until(lambda: is_gone(child))
