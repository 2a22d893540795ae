# SPDX-License-Identifier: MIT
"""Two copies of the same tasks: a backup that is restored elsewhere, and a replica beside its primary. The rows
of docs/durability.md and the steps of docs/durable-tasks.md that are about them."""
import shutil

import pytest

from harness import wait_replica_in_sync, wait_until
from situations import BLOCK_MS, let_pass

HOUR = 3600000


def take(r, name="s"):
    """Waits for one task, and returns its id and token."""
    [[_, task, token, *_]] = r.execute_command("TW.TAKE", 1, name, "LEASE", HOUR, "BLOCK", BLOCK_MS)
    return task, token


@pytest.fixture
def backup(fleet, clock):
    """A folder as a server left it that died: a task that is due later by a second, one for workers, one that a
    worker has."""
    server = fleet.server(appendonly="yes")
    r = server.client()
    r.execute_command("TW.PUT", "s", "leased", "IN", 0, "PAYLOAD", "v")
    assert take(r)[0] == "leased"
    due = clock.now() + 1000
    r.execute_command("TW.PUT", "s", "work", "AT", due, "PAYLOAD", "v")
    r.execute_command("TW.SEND", "s", "q", "timeout", "AT", due, "LIST", "PAYLOAD", "v")
    server.kill()
    clock.reach(due)
    return server.folder


def restored(fleet, backup, *words):
    server = fleet.server(start=False, module_args=words, appendonly="yes")
    shutil.copytree(backup, server.folder, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.conf", "*.log", "*.pid"))
    server.start()
    return server


def test_a_restored_backup_fires_nothing_until_it_is_told(fleet, backup):
    server = restored(fleet, backup, "deliver", "no")
    r = server.client()
    wait_until(lambda: server.tw()["paused_tasks"] == 2)
    assert r.execute_command("TW.TAKE", 1, "s", "LEASE", HOUR, "BLOCK", 100) is None
    found = server.tw()
    names = ("delivered", "ready", "leased", "late")
    assert (r.llen("q"), *(found[name] for name in names)) == (0, 0, 2, 1, 0)
    assert r.execute_command("TW.CANCEL", "s", "work") == [1]  # It can be looked at and changed.
    r.config_set("tickwheel.deliver", "yes")
    assert r.blpop("q", BLOCK_MS // 1000 - 5) == ("q", "v")
    assert (r.execute_command("TW.LEN", "s"), server.tw()["leased"]) == (1, 1)


def test_a_restored_backup_without_the_setting_does_the_work_again(fleet, backup):
    """The proof that the test before can fail."""
    r = restored(fleet, backup).client()
    assert take(r)[0] == "work"
    assert r.blpop("q", BLOCK_MS // 1000 - 5) == ("q", "v")


def pair(fleet):
    primary = fleet.server(appendonly="yes")
    replica = fleet.server(replicaof=primary, appendonly="yes")
    return primary, replica, primary.client(), replica.client()


def test_the_setting_is_not_replicated_and_a_pause_is(fleet):
    primary, replica, r, other = pair(fleet)
    r.config_set("tickwheel.deliver", "no")
    r.execute_command("TW.PAUSE", "paused")
    for name in ("s", "paused"):
        r.execute_command("TW.PUT", name, "a", "IN", 0, "PAYLOAD", "v")
    wait_replica_in_sync(primary, replica)
    primary.kill()
    other.replicaof("NO", "ONE")
    assert take(other)[0] == "a"
    let_pass(other, 0)
    assert other.execute_command("TW.TAKE", 1, "paused", "LEASE", HOUR, "BLOCK", 100) is None
    assert other.execute_command("TW.RESUME", "paused") == 1
    assert take(other, "paused")[0] == "a"


def test_two_primaries_give_the_task_to_two_workers(fleet):
    """As after a partition. Each token counts on its own primary only, and the old primary's copy is thrown
    away."""
    primary, replica, r, other = pair(fleet)
    r.execute_command("TW.PUT", "s", "a", "IN", 0, "PAYLOAD", "v")
    wait_replica_in_sync(primary, replica)
    other.replicaof("NO", "ONE")
    (_, old), (_, new) = take(r), take(other)
    assert old != new
    assert other.execute_command("TW.ACK", "s", "a", old) == 0
    assert r.execute_command("TW.ACK", "s", "a", old) == 1
    r.replicaof("127.0.0.1", replica.port)
    wait_replica_in_sync(replica, primary)
    assert r.execute_command("TW.LEN", "s") == 1
    assert other.execute_command("TW.ACK", "s", "a", new) == 1
