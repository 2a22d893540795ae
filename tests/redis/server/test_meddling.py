# SPDX-License-Identifier: MIT
"""Other modules may call commands in the middle of a delivery or of a command, when they receive a keyspace
notification. The server must live, each task is delivered as often as it was due, and a replica and the log
end up with the data of the primary. meddler.c is such a module."""
import pytest

from harness import as_map, now_ms, wait_replica_in_sync, wait_until
from situations import digest, meddled
from workers import put_frail, put_ready, state, take

MANY = 40       # more tasks than leave their queue together
AFTER = [0, 8, MANY - 1]  # deliveries before the delivery in which the handler acts
HOUR = 3600 * 1000
FAR = now_ms() + HOUR
AT_ONCE = {"repl_diskless_sync": "no", "shutdown_timeout": 0}  # No cron of a second is waited for.


@pytest.fixture
def pair(fleet):
    """A primary with the other module, and a replica. The append-only file is on."""
    server = meddled(fleet, appendonly="yes", **AT_ONCE)
    return server, fleet.server(replicaof=server)


def add_many(r, due, **options):
    pipe = r.pipeline(transaction=True)
    for i in range(MANY):
        pipe.execute_command("TW.SEND", "s", "t", f"id{i}", "AT", due, *options.get("words", ()), "PAYLOAD",
                             "n", i)
    pipe.execute()


def held(r):
    """Returns the contents of the keys of the tests."""
    found = {}
    for name in ("s", "s2"):
        if r.exists(name):
            found[name] = sorted((row[0], row[1]) for row in
                                 r.execute_command("TW.SCAN", name, 0, "COUNT", 10000)[1])
    for name in ("t", "t2"):
        found[name] = r.xrange(name)
    return found


def settled(pair):
    """Asserts that the replica and the log have the same contents as the primary, and returns these
    contents."""
    server, replica = pair
    r = server.client()
    wait_replica_in_sync(server, replica)
    mine = held(r)
    assert held(replica.client()) == mine
    server.restart()
    assert held(server.client()) == mine
    return mine


def meddle(pair, skip, times, *command, words=()):
    """Delivers MANY tasks. The handler calls the command after `skip` deliveries."""
    r = pair[0].client()
    assert r.execute_command("MEDDLE", "xadd", skip, times, *command) == "OK"
    add_many(r, now_ms(), words=words)
    wait_until(lambda: r.execute_command("MEDDLE.DONE")[0] == times)
    return r


def ids_of(found, stream="t"):
    return [entry[1]["tw.id"] for entry in found[stream]]


ALL = [f"id{i}" for i in range(MANY)]


def wait_delivered(r, count):
    wait_until(lambda: r.xlen("t") >= count and int(r.info("tickwheel")["tickwheel_late"]) == 0)


@pytest.mark.parametrize("after", AFTER)
def test_cancelling_the_task_that_is_being_delivered(pair, after):
    """The task is in the stream already. Cancelling it is possible, and it is not delivered again."""
    r = meddle(pair, after, 1, "TW.CANCEL", "s", f"id{after}")
    wait_delivered(r, MANY)
    assert r.execute_command("MEDDLE.DONE") == [1, "*1\r\n:1\r\n"]
    found = settled(pair)
    assert ids_of(found) == ALL and "s" not in found
    assert int(pair[0].client().exists("s")) == 0


@pytest.mark.parametrize("after", AFTER[1:])
def test_a_task_that_was_delivered_is_not_there_any_more(pair, after):
    r = meddle(pair, after, 1, "TW.CANCEL", "s", *[f"id{i}" for i in range(after)])
    wait_delivered(r, MANY)
    assert r.execute_command("MEDDLE.DONE") == [1, f"*{after}\r\n" + ":0\r\n" * after]
    assert ids_of(settled(pair)) == ALL


@pytest.mark.parametrize("after", AFTER[:-1])
def test_cancelling_those_to_come(pair, after):
    r = meddle(pair, after, 1, "TW.CANCEL", "s", *ALL[after + 1:])
    wait_until(lambda: r.exists("s") == 0)
    found = settled(pair)
    assert ids_of(found) == ALL[:after + 1]
    assert int(pair[0].client().info("tickwheel")["tickwheel_tasks"]) == 0


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("back", [0, 5])
def test_filing_a_delivered_task_again(pair, after, back):
    """A usual handler: it adds a delivered task once more, under the same id. The module must not mistake the
    new task for the old task."""
    again = f"id{max(0, after - back)}"
    r = meddle(pair, after, 1, "TW.SEND", "s", "t", again, "AT", FAR, "PAYLOAD", "n", "again")
    wait_delivered(r, MANY)
    found = settled(pair)
    assert ids_of(found) == ALL
    assert found["s"] == [(again, FAR)]


@pytest.mark.parametrize("words", [(), ("EVERY", 3600 * 1000)])
def test_moving_the_task_that_is_being_delivered(pair, words):
    r = meddle(pair, 5, 1, "TW.MOVE", "s", "id5", "AT", FAR, words=words)
    wait_delivered(r, MANY)
    found = settled(pair)
    assert ids_of(found) == ALL
    assert dict(found["s"])["id5"] == FAR
    assert len(found["s"]) == (MANY if words else 1)


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("options", [(), ("TRIES", 7)], ids=["same", "other"])
def test_the_delivery_of_a_task_that_is_put_again_with_keepdue_goes_on(pair, after, options):
    """The task keeps its time, for which it has just been delivered."""
    r = meddle(pair, after, 1, "TW.SEND", "s", "t", f"id{after}", "AT", FAR, "KEEPDUE", *options, "PAYLOAD",
               "n", "again")
    wait_delivered(r, MANY)
    wait_until(lambda: r.exists("s") == 0)
    assert ids_of(settled(pair)) == ALL


def test_the_delivery_of_a_series_that_is_put_again_goes_on(pair):
    """The next period comes by the new options."""
    r = meddle(pair, 5, 1, "TW.SEND", "s", "t", "id5", "AT", FAR, "KEEPDUE", "EVERY", 2 * HOUR, "TIMES", 9,
               "TRIES", 7, "PAYLOAD", "n", "again", words=("EVERY", HOUR))
    wait_delivered(r, MANY)
    found = settled(pair)
    assert ids_of(found) == ALL
    due = {name: int(fields["tw.due"]) for _, fields in found["t"] for name in [fields["tw.id"]]}
    assert dict(found["s"]) == {name: due[name] + (2 if name == "id5" else 1) * HOUR for name in ALL}
    again = as_map(pair[0].client().execute_command("TW.GET", "s", "id5")[0])
    assert (again["times"], again["payload"]) == (8, ["n", "again"])


def test_the_missed_periods_of_a_series_that_is_put_again_are_counted_anew(pair):
    """The delivery stands for 10 more hours. These are 2 of the new periods, so the next one is the third."""
    r, due = pair[0].client(), now_ms() - 10 * HOUR - HOUR // 2
    r.execute_command("MEDDLE", "xadd", 0, 1, "TW.SEND", "s", "t", "a", "AT", FAR, "KEEPDUE", "EVERY", 4 * HOUR,
                      "PAYLOAD", "n", "again")
    r.execute_command("TW.SEND", "s", "t", "a", "AT", due, "EVERY", HOUR, "PAYLOAD", "n", "1")
    wait_until(lambda: r.execute_command("MEDDLE.DONE")[0] == 1)
    wait_delivered(r, 1)
    found = settled(pair)
    assert [fields["tw.missed-periods"] for _, fields in found["t"]] == ["10"]
    assert found["s"] == [("a", due + 3 * 4 * HOUR)]


@pytest.mark.parametrize("command", [("UNLINK", "s"), ("DEL", "s"), ("FLUSHALL",), ("FLUSHALL", "ASYNC"),
                                     ("RESTORE", "s", 0, "nonsense", "REPLACE"), ("SET", "s", "gone")])
@pytest.mark.parametrize("after", AFTER)
def test_the_queue_is_removed_meanwhile(pair, after, command):
    r = meddle(pair, after, 1, *command)
    if command[0] == "RESTORE":
        wait_delivered(r, MANY)
        assert ids_of(settled(pair)) == ALL
        return
    wait_until(lambda: r.info("tickwheel")["tickwheel_tasks"] == 0)
    wait_until(lambda: r.info("tickwheel")["tickwheel_late"] == 0)
    if command[0] == "SET":
        r.delete("s")
    # The server logs the commands of a handler before the command that notified the handler. So after
    # FLUSHALL primary and replica differ by an entry, with any module.
    if command[0] != "FLUSHALL":
        assert ids_of(settled(pair)) == ALL[:after + 1]
    r = pair[0].client()
    r.execute_command("TW.SEND", "s", "t2", "id1", "IN", 1, "PAYLOAD", "n", "new")
    wait_until(lambda: r.xlen("t2") == 1)


@pytest.mark.parametrize("after", AFTER)
def test_another_queue_takes_its_place(pair, after):
    """The tasks of the old queue are gone, and the module does not mistake tasks of the new queue for
    them."""
    server, _ = pair
    r = server.client()
    r.execute_command("TW.SEND", "s2", "t2", f"id{after}", "AT", FAR, "PAYLOAD", "n", "new")
    r = meddle(pair, after, 1, "RENAME", "s2", "s")
    wait_until(lambda: r.info("tickwheel")["tickwheel_tasks"] == 1)
    found = settled(pair)
    assert ids_of(found) == ALL[:after + 1]
    assert found["s"] == [(f"id{after}", FAR)]


@pytest.mark.parametrize("after", AFTER)
def test_the_queue_is_renamed_meanwhile(pair, after):
    r = meddle(pair, after, 1, "RENAME", "s", "s2")
    wait_delivered(r, MANY)
    wait_until(lambda: not r.exists("s2"))
    found = settled(pair)
    assert ids_of(found) == ALL and "s" not in found and "s2" not in found


def test_looking_within_a_delivery(pair):
    """TW.LEN counts the tasks that are still to be delivered, and the task that is being delivered."""
    r = meddle(pair, 9, 1, "TW.LEN", "s")
    wait_delivered(r, MANY)
    assert r.execute_command("MEDDLE.DONE")[1] == f":{MANY - 9}\r\n"


# Commands whose notification comes after the queue has changed

CHANGES = {
    "tw.send": ["TW.SEND", "s", "t", "last", "AT", FAR, "PAYLOAD", "n", "1"],
    "tw.move": ["TW.MOVE", "s", "last", "AT", FAR + 1],
    "tw.cancel": ["TW.CANCEL", "s", "last"],
    "tw.promote": ["TW.PROMOTE", "s", "ALL"],
}
MEDDLING = [("UNLINK", "s"), ("FLUSHALL", ), ("TW.CANCEL", "s", "last"), ("RENAME", "s", "s2"),
            ("TW.SEND", "s", "t2", "new", "AT", FAR, "PAYLOAD", "n", "2"), ("TW.PROMOTE", "s", "ALL"),
            ("RENAME", "other", "s")]


@pytest.mark.parametrize("meddling", MEDDLING, ids=lambda words: "_".join(map(str, words[:3])))
@pytest.mark.parametrize("event", CHANGES)
def test_commands_are_meddled_with(pair, event, meddling):
    server, replica = pair
    r = server.client()
    r.execute_command("TW.SEND", "other", "t2", "new", "AT", FAR, "PAYLOAD", "n", "2")
    if event != "tw.send":
        r.execute_command(*CHANGES["tw.send"])
    r.execute_command("MEDDLE", event, 0, 1, *meddling)
    r.execute_command(*CHANGES[event])
    assert r.execute_command("MEDDLE.DONE")[0] == 1
    if "new" in meddling or "other" in meddling:
        assert r.execute_command("TW.GET", "s", "new") != [None]
    there, count = r.pipeline(transaction=True).exists("s").execute_command("TW.LEN", "s").execute()
    assert there == (count > 0)
    # The server may log the commands of a handler before the command that notified the handler. So the
    # contents are not compared here.
    wait_replica_in_sync(server, replica)
    server.restart()


FILL_AND_DELETE = "redis.call('SET', 'big', string.rep('x', 8000000)) return redis.call('DEL', KEYS[1])"


def test_the_queue_of_a_delivery_goes_while_memory_is_full(fleet):
    """The server frees a value at once then. The delivery, which has its target's reply, counts for the queue,
    and for the server. `junk` overwrites what is freed, where the server has jemalloc."""
    server = meddled(fleet, env={"MALLOC_CONF": "junk:free"})
    r, before = server.client(), server.tw()["delivered"]
    r.execute_command("MEDDLE", "xadd", 0, 1, "EVAL", FILL_AND_DELETE, 1, "s")
    add_many(r, now_ms() + HOUR)
    r.config_set("maxmemory", r.info("memory")["used_memory"] + 4000000)
    r.execute_command("TW.MOVE", "s", "id3", "IN", 0)
    wait_until(lambda: r.execute_command("MEDDLE.DONE")[0] == 1)
    assert r.execute_command("MEDDLE.DONE")[1] == ":1\r\n"
    wait_until(lambda: server.tw()["delivered"] == before + 1)
    assert (r.exists("s"), r.xlen("t")) == (0, 1)
    r.config_set("maxmemory", 0)
    wait_until(lambda: server.tw()["reaping"] == 0)


# A handler that files tasks itself. The log has its commands behind the outcome that it was notified of.

FIRST = {"put": ["TW.PUT", "s", "a", "AT", FAR, "PAYLOAD", "v"],
         "send": ["TW.SEND", "s", "t", "a", "AT", FAR, "PAYLOAD", "n", "v"],
         "pause": ["TW.PAUSE", "s"]}
SECOND = {  # and when the task `a` is due then
    ("TW.PUT", "s", "a", "AT", FAR + 2, "PAYLOAD", "w"): FAR + 2,
    ("TW.PUT", "s", "a", "AT", FAR + 2, "KEEPDUE", "PAYLOAD", "w"): FAR,
    ("TW.PUT", "s", "a", "AT", FAR + 2, "NX", "PAYLOAD", "w"): FAR,
    ("TW.PUT", "s", "b", "AT", FAR, "PAYLOAD", "w"): FAR,
    ("TW.SEND", "s", "t", "a", "AT", FAR + 2, "PAYLOAD", "n", "w"): FAR + 2,
    ("TW.MOVE", "s", "a", "AT", FAR + 1): FAR + 1,
    ("EVAL", "redis.call('TW.PUT', KEYS[1], 'b', 'AT', ARGV[1], 'PAYLOAD', 'w')"
             "redis.call('TW.RESUME', KEYS[1])", 1, "s", FAR): FAR,
}


def looks(server):
    """Returns the data and the order of the tasks, and whether the queue is paused."""
    r = server.client()
    return (digest(server), r.execute_command("TW.RANGE", "s", "-", "+"),
            r.exists("s") and as_map(r.execute_command("TW.INFO", "s"))["paused"])


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("event", ["new", "tw"])
def test_a_handler_files_tasks_when_a_queue_begins(pair, event, first):
    """At the event `new` the command that makes the queue has not ended yet. A handler must not remove the key
    then: the server ends with a failed assertion, whatever the type."""
    server, replica = pair
    wait_replica_in_sync(server, replica)
    r = server.client()
    for words, due in SECOND.items():
        r.execute_command("MEDDLE", event if event == "new" else f"tw.{first}", 0, 1, *words)
        r.execute_command(*FIRST[first])
        assert r.execute_command("MEDDLE.DONE")[0] == 1
        if first != "pause":
            assert as_map(r.execute_command("TW.GET", "s", "a")[0])["due"] == due, words
        before = looks(server)
        wait_replica_in_sync(server, replica)
        assert looks(replica) == before, words
        r.execute_command("DEBUG", "LOADAOF")
        assert looks(server) == before, words
        r.delete("s")


# Leases that end

LEASES = [("TW.ACK", "s", "b", "token"), ("TW.TOUCH", "s", "b", "token", "LEASE", HOUR),
          ("TW.NACK", "s", "b", "token", "IN", HOUR), ("TW.NACK", "s", "b", "token", "DEAD"),
          ("TW.NACK", "s", "b", "token", "BACK"),
          ("TW.CANCEL", "s", "a", "b", "c"), ("TW.MOVE", "s", "b", "IN", HOUR),
          ("TW.PUT", "s", "b", "IN", HOUR, "PAYLOAD", "v"),
          ("TW.PUT", "s", "b", "IN", HOUR, "KEEPDUE", "TRIES", 7, "PAYLOAD", "v"), ("TW.PAUSE", "s"),
          ("UNLINK", "s"),
          ("SET", "s", "text"), ("RENAME", "s", "s2"), ("RENAME", "other", "s"), ("COPY", "s", "s2"),
          ("TW.TAKE", 1, "s", "LEASE", HOUR, "COUNT", 9), ("TW.REPLAY", "s", "ALL", "IN", HOUR),
          ("TW.PURGE", "s", "ALL"), ("TW.PROMOTE", "s", "ALL"), ("CONFIG", "SET", "tickwheel.deliver", "no")]


ALL_END = """
local ends
for i = 1, 3 do
    ends = redis.call('TW.TOUCH', KEYS[1], string.sub('abc', i, i), ARGV[i], 'LEASE', 2)
    if i == 1 then redis.call('TW.SEND', KEYS[1], KEYS[2], 'before', 'AT', ends - 1, 'PAYLOAD', 'n', 'v') end
end
redis.call('TW.SEND', KEYS[1], KEYS[2], 'after', 'AT', ends + 1, 'PAYLOAD', 'n', 'v')
"""


def leases_end(r, event, skip, words):
    """In one tick a task is delivered, the leases of a, b and c end, and another task is delivered. Returns the
    reply to the handler's command."""
    put_frail(r, "s", "a", "b")
    put_ready(r, "s", "c", options=("BACKOFF", HOUR, 1, HOUR))
    put_ready(r, "other", "new")
    tokens = take(r, "s", count=3)
    words = [tokens["b"] if word == "token" else word for word in words]
    assert r.execute_command("MEDDLE", event, skip, 1, *words) == "OK"
    with r.pipeline(transaction=True) as both:
        both.eval(ALL_END, 2, "s", "t", *(tokens[name] for name in "abc"))
        both.execute_command("DEBUG", "SLEEP", 0.02)
        both.execute()
    wait_until(lambda: r.execute_command("MEDDLE.DONE")[0] == 1, message=f"{event}: nobody meddled")
    return r.execute_command("MEDDLE.DONE")[1]


@pytest.mark.parametrize("event,skip", [("xadd", 0), ("xadd", 1), ("tw.dead", 0)])
def test_handlers_meddle_while_leases_end(pair, event, skip):
    """Only in the first case is the lease of b still running when the handler acts."""
    server, replica = pair
    wait_replica_in_sync(server, replica)
    r, runs = server.client(), (event, skip) == ("xadd", 0)
    for words in LEASES:
        reply = leases_end(r, event, skip, words)
        r.config_set("tickwheel.deliver", "no")  # Nothing changes any more while servers are compared.
        if "token" in words:
            refused = reply.startswith(":0" if words[0] == "TW.ACK" else ("$-1", "_"))
            assert refused == (not runs), (words, reply)
        if words[0] == "TW.TOUCH":
            assert state(r, "s", "b") == ("leased" if runs else "dead")
        wait_replica_in_sync(server, replica)
        assert digest(server) == digest(replica), words
        before = digest(server)
        r.execute_command("DEBUG", "LOADAOF")
        assert digest(server) == before, words
        r.flushall()
        r.config_set("tickwheel.deliver", "yes")
    wait_until(lambda: server.tw()["queues"] == 0)
    assert server.tw()["renewed"] == 0


MOVES = "redis.call('TW.MOVE', KEYS[1], 'a', 'AT', ARGV[1]) "
PROMOTES = "return redis.call('TW.PROMOTE', KEYS[1], 'IDS', 1, 'a')"
RENEWS = "return redis.call('TW.SEND', KEYS[1], 't', 'a', 'AT', 1, 'KEEPDUE', 'PAYLOAD', 'n', 'new')"


@pytest.mark.parametrize("script, entries, left", [
    (MOVES + PROMOTES, 2, False), (MOVES + RENEWS, 1, True), (MOVES + "return 1", 1, True)])
def test_a_task_that_is_moved_while_it_is_delivered_waits_anew(fleet, script, entries, left):
    """The task has an attempt state, so each change gives it another block, and the second may be the first."""
    server = meddled(fleet, appendonly="yes")
    r = server.client()
    for name in ("other", "a"):
        r.execute_command("TW.SEND", "s", "t", name, "AT", FAR, "PAYLOAD", "n", "")
    r.execute_command("MEDDLE", "xadd", 0, 1, "EVAL", script, 1, "s", FAR + 5000)
    assert r.execute_command("TW.PROMOTE", "s", "IDS", 1, "a") == 1
    wait_until(lambda: r.execute_command("MEDDLE.DONE")[0] == 1)
    wait_until(lambda: r.xlen("t") == entries)
    wait_until(lambda: r.execute_command("TW.LEN", "s") == 1 + left)
    before = digest(server)
    r.execute_command("DEBUG", "LOADAOF")
    assert digest(server) == before and r.xlen("t") == entries
