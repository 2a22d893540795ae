#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets unpaid orders expire: a consumer of the Stream that Tickwheel delivers timeouts to (shop.py files them).

Run as many as you like, each with a --name of its own: they share the work as a consumer group. A consumer that dies
leaves the entries that it had read and not acknowledged; another one takes them over when they are --idle ms old. So
an entry may come twice, and after a failover so may a task, as two entries. What a task has brought about is therefore
noted under its tw.id and tw.due, in the transaction that brings it about: what comes again finds the note, and does
nothing.
"""
import argparse
import signal
import sys

try:
    import redis
except ImportError:
    sys.exit(f"{sys.executable} has no redis client: install it (Debian: python3-redis; elsewhere: pip install redis)")

STREAM, GROUP = "{shop}:unpaid", "expiry"
REMEMBER_S = 24 * 3600  # How long after a task its second coming is recognised.


def make_group(r):
    try:
        r.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    except redis.exceptions.ResponseError as error:
        if not str(error).startswith("BUSYGROUP"):  # which says that it is there already
            raise


def expire(r, entry, task):
    """What is to be done with one task, once: looks, then changes all at once; looks again if something has moved."""
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


def batches(r, name, idle):
    """First what others have left, then what is new, for ever."""
    while True:
        _, left, *_ = r.xautoclaim(STREAM, GROUP, name, min_idle_time=idle, count=100)
        yield left
        answer = r.xreadgroup(GROUP, name, {STREAM: ">"}, count=100, block=1000)
        yield answer[0][1] if answer else []


def main():
    parser = argparse.ArgumentParser(description="lets unpaid orders expire")
    parser.add_argument("--port", type=int, default=7379)
    parser.add_argument("--name", default="python", help="of this consumer in its group (default: python)")
    parser.add_argument("--idle", type=int, default=60000, metavar="MS",
                        help="when to take over from others (default: 60000)")
    parser.add_argument("--count", type=int, default=0, help="stop after so many entries (default: never)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    r = redis.Redis(host="127.0.0.1", port=options.port, decode_responses=True)
    done = 0
    try:
        make_group(r)
        for batch in batches(r, options.name, options.idle):
            for entry, task in batch:
                expire(r, entry, task)
                done += 1
                if done == options.count:
                    return
    except KeyboardInterrupt:
        pass
    except redis.exceptions.RedisError as error:
        sys.exit(f"consumer.py: {error}")


main()
