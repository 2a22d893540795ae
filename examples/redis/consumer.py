#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets unpaid orders expire: a consumer of the Stream that Tickwheel delivers timeouts to (shop.py files them).

Run as many as you like, each with a --name of its own: they share the work as a consumer group. A consumer that
dies leaves the entries that it had read and not acknowledged; another one takes them over when they are --idle
ms old. So an entry may come twice, and after a failover so may a task, as two entries. What a task has brought
about is therefore noted under its tw.id and tw.due, in the transaction that brings it about: what comes again
finds the note, and does nothing.

An entry whose work fails stays in the group's list of pending entries, and comes again when it is --idle ms
old. The group counts how often each entry was handed out (XPENDING tells; the entry's own tw.attempt is another
count, the server's). When the work has failed --tries times, the entry goes to the Stream of failures,
{shop}:failed, with the last error, and is acknowledged: one bad entry neither stops a consumer nor comes back
for ever. The same holds for work that kills its consumer. Therefore a consumer takes one entry at a time. With
ten at once, the first of which kills each consumer, the other nine would be counted as handed out as well, and
would be given up though nobody had tried them.
"""
import argparse
import re
import signal
import sys
import time

try:
    import redis
except ImportError:
    sys.exit(
        f"{sys.executable} has no redis client: "
        "install it (Debian: python3-redis; elsewhere: pip install redis)"
    )

STREAM, GROUP, FAILURES = "{shop}:unpaid", "expiry", "{shop}:failed"
REMEMBER_S = 24 * 3600  # How long after a task its second coming is recognised.

# A server that is full, or has lost its disk or its replicas, takes no writes for a while: that is not the
# entry's fault. Some of these errors are classes of the client, the others begin so.
NO_WRITES = re.compile(
    r"^(OutOfMemory|ReadOnly|ExecAbort)Error|: (OOM|MISCONF|NOREPLICAS|CLUSTERDOWN|TRYAGAIN|EXECABORT)\b")

# A script is all or nothing here: XACK comes last, so a failure that cannot be written leaves the entry where
# it is. An entry that another consumer has finished meanwhile is not pending any more, and is no failure.
GIVE_UP = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
"""


def make_group(r):
    try:
        r.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    except redis.exceptions.ResponseError as error:
        if not str(error).startswith("BUSYGROUP"):  # which says that it is there already
            raise


def expire(r, entry, task):
    """What is to be done with one task, once: looks, then changes all at once; if something has moved, looks
    again."""
    order = f"{{shop}}:order:{task['order']}"
    note = f"{{shop}}:done:{task['tw.id']}:{task['tw.due']}"

    def once(transaction):
        seen, state = transaction.exists(note), transaction.hget(order, "state")
        transaction.multi()
        if not seen and state == "placed":
            transaction.hset(order, "state", "expired")
        transaction.set(note, entry, ex=REMEMBER_S)
        transaction.xack(STREAM, GROUP, entry)
        return "has come before" if seen else "was not paid: expired" if state == "placed" else f"is {state}"

    outcome = r.transaction(once, note, order, value_from_callable=True)
    print(f"order {task['order']} {outcome}", flush=True)


def give_up(r, entry, task, tries, error):
    """Moves an entry to the failures, for somebody to look at."""
    failure = {"failed.entry": entry, "failed.tries": tries, "failed.error": error}
    fields = [text for pair in (*failure.items(), *task.items()) for text in pair]
    if r.eval(GIVE_UP, 2, STREAM, FAILURES, GROUP, entry, *fields):
        print(f"entry {entry} is given up after {tries} tries: {error}", flush=True)
    else:
        print(f"entry {entry} failed, and another consumer has finished it", flush=True)


def handle(r, entry, task, tried, tries):
    """Does the work of an entry that was handed out `tried` times, and gives it up when that was the last of
    `tries`."""
    if tried > tries:  # by consumers that did not live to say so
        give_up(r, entry, task, tried - 1, "no consumer has finished it")
        return
    while True:
        try:
            expire(r, entry, task)
            return
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
            raise  # the server is away: that is not the entry's fault
        except Exception as error:  # whatever the work may raise
            reason = f"{type(error).__name__}: {error}"
            if not NO_WRITES.search(reason):
                break
        print(f"entry {entry} waits, as the server takes no writes: {reason}", flush=True)
        time.sleep(1)
    if tried == tries:
        give_up(r, entry, task, tries, reason)
    else:
        print(f"entry {entry} failed, try {tried} of {tries}: {reason}", flush=True)


def entries(r, name, idle):
    """(entry, its fields, how often it was handed out), for ever: those that were left or have failed, then a
    new one."""
    while True:
        for left in r.xpending_range(STREAM, GROUP, "-", "+", 100, idle=idle):
            for entry, task in r.xclaim(STREAM, GROUP, name, idle,
                                        [left["message_id"]]):  # none when another was faster
                yield entry, task, left["times_delivered"] + 1
        answer = r.xreadgroup(GROUP, name, {STREAM: ">"}, count=1, block=1000)
        for entry, task in answer[0][1] if answer else []:
            yield entry, task, 1


def main():
    parser = argparse.ArgumentParser(description="lets unpaid orders expire")
    parser.add_argument("--port", type=int, default=7379)
    parser.add_argument("--name", default="python", help="of this consumer in its group (default: python)")
    parser.add_argument("--idle", type=int, default=60000, metavar="MS",
                        help="when to take over what was left, or try again what has failed (default: 60000)")
    parser.add_argument("--tries", type=int, default=3, metavar="N",
                        help="give an entry up when it has failed so often (default: 3)")
    parser.add_argument("--count", type=int, default=0, help="stop after so many entries (default: never)")
    options = parser.parse_args()
    if options.tries < 1:
        parser.error(f"--tries {options.tries}: expected 1 or more")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    r = redis.Redis(host="127.0.0.1", port=options.port, decode_responses=True)
    done = 0
    try:
        make_group(r)
        for entry, task, tried in entries(r, options.name, options.idle):
            handle(r, entry, task, tried, options.tries)
            done += 1
            if done == options.count:
                return
    except KeyboardInterrupt:
        pass
    except redis.exceptions.RedisError as error:
        sys.exit(f"consumer.py: {error}")


main()
