#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets unpaid orders expire: a consumer of the Stream that Tickwheel delivers timeouts to, for those who have
consumer groups already. TW.SEND files such a timeout (README.md, in the folder above). The worker of shop.py
does the same without a Stream, and leaves retries and leases to the server.

Run as many consumers as you like, each with its own --name: they share the work as a consumer group. A
consumer that dies leaves entries that it has read and not acknowledged. Another consumer takes an entry over
when it is --idle ms old. So an entry may come twice. After a failover a task may come twice, too, as two
entries. Therefore the transaction that changes the order also writes a note with the task's tw.id and tw.due.
If the task comes again, the consumer finds the note, and does nothing.

An entry whose work fails stays in the group's list of pending entries, and comes again when it is --idle ms
old. The group counts how often it has handed out each entry; XPENDING tells that count. The entry's own
tw.attempt is another count: the server's tries to write the entry. When the work has failed --tries times,
the consumer writes the entry to the Stream of failures, {shop}:failed, with the last error, and acknowledges
it. So a bad entry (a poison message) does not stop a consumer, and does not come back for ever. The same
holds for work that kills its consumer.

A consumer takes one entry at a time. Suppose that it took ten, and that the first kills each consumer. The
group would count the other nine as handed out as well, and they would be given up though nobody had tried
them.
"""
import argparse
import os
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
REMEMBER_S = 24 * 3600  # For so long a note recognises a task that comes again.

# A server whose memory is full, or which has lost its disk or its replicas, refuses writes for a while. This
# does not count as a try of the entry. Some of these errors are classes of the client; for the others the
# message begins with the word.
NO_WRITES = re.compile(
    r"^(OutOfMemory|ReadOnly|ExecAbort)Error|: (OOM|MISCONF|NOREPLICAS|CLUSTERDOWN|TRYAGAIN|EXECABORT)\b")

# XACK comes last. So if XADD fails, the entry stays pending. If another consumer has finished the entry
# meanwhile, the entry is no longer pending, and the script does nothing.
GIVE_UP = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
"""


def make_group(r):
    try:
        r.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    except redis.exceptions.ResponseError as error:
        if not str(error).startswith("BUSYGROUP"):  # the group exists already
            raise


def expire(r, entry, task):
    """Does the work of one task, once. Reads the note and the order, then changes both in one transaction. If
    either has changed meanwhile, starts again."""
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
    """Moves an entry to the Stream of failures, for a person to look at."""
    failure = {"failed.entry": entry, "failed.tries": tries, "failed.error": error}
    fields = [text for pair in (*failure.items(), *task.items()) for text in pair]
    if r.eval(GIVE_UP, 2, STREAM, FAILURES, GROUP, entry, *fields):
        print(f"entry {entry} is given up after {tries} tries: {error}", flush=True)
    else:
        print(f"entry {entry} failed, and another consumer has finished it", flush=True)


def handle(r, entry, task, tried, tries):
    """Does the work of an entry that was handed out `tried` times. If the work fails and `tried` is `tries`,
    gives the entry up."""
    if tried > tries:  # the consumers before this one died during the work
        give_up(r, entry, task, tried - 1, "no consumer has finished it")
        return
    while True:
        try:
            expire(r, entry, task)
            return
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
            raise  # the server is away: this does not count as a try of the entry
        except Exception as error:  # any error of the work
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
    """Yields (entry, fields, how often it was handed out), for ever: first the pending entries that are `idle`
    ms old, left by a consumer or failed, then a new entry."""
    while True:
        for left in r.xpending_range(STREAM, GROUP, "-", "+", 100, idle=idle):
            for entry, task in r.xclaim(STREAM, GROUP, name, idle,
                                        [left["message_id"]]):  # none if another consumer was faster
                yield entry, task, left["times_delivered"] + 1
        answer = r.xreadgroup(GROUP, name, {STREAM: ">"}, count=1, block=1000)
        for entry, task in answer[0][1] if answer else []:
            yield entry, task, 1


def main():
    parser = argparse.ArgumentParser(description="lets unpaid orders expire")
    parser.add_argument("--url", default=os.environ.get("REDIS_URL", "redis://127.0.0.1:7379"),
                        help="redis://user:password@host:port/db, rediss:// with TLS, unix://path "
                             "(default: $REDIS_URL, or redis://127.0.0.1:7379, the server of make serve)")
    parser.add_argument("--name", default="python", help="name of this consumer in its group (default: python)")
    parser.add_argument("--idle", type=int, default=60000, metavar="MS",
                        help="take over or retry an entry that has been pending for so long (default: 60000)")
    parser.add_argument("--tries", type=int, default=3, metavar="N",
                        help="give an entry up after so many tries (default: 3)")
    parser.add_argument("--count", type=int, default=0, help="stop after so many entries (default: never)")
    options = parser.parse_args()
    if options.tries < 1:
        parser.error(f"--tries {options.tries}: expected 1 or more")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    done = 0
    try:
        r = redis.Redis.from_url(options.url, decode_responses=True)
        make_group(r)
        for entry, task, tried in entries(r, options.name, options.idle):
            handle(r, entry, task, tried, options.tries)
            done += 1
            if done == options.count:
                return
    except KeyboardInterrupt:
        pass
    except (redis.exceptions.RedisError, ValueError) as error:
        sys.exit(f"consumer.py: {error}")


main()
