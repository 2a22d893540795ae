# SPDX-License-Identifier: MIT
"""The subject of the library for Python with threads; tests/clients/subject.py says what it prints.

Also the common part of asyncio.py."""
import argparse
import contextlib
import hashlib
import logging
import os
import signal
import sys

import redis
import redis.sentinel

import tickwheel


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--sentinel")
    parser.add_argument("--service")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--lease", type=int, default=30000)
    parser.add_argument("--name")
    parser.add_argument("--grace", type=int)
    parser.add_argument("--timeout", type=int)
    parser.add_argument("queues", nargs="+")
    return parser.parse_args()


def options_of(arguments):
    """Returns the options of a worker; times are ms there and seconds here."""
    return {"name": arguments.name, "jobs": arguments.jobs, "lease": arguments.lease / 1000,
            "grace": None if arguments.grace is None else arguments.grace / 1000}


def limit_of(arguments):
    """Returns the time limit of each attempt in seconds, or None."""
    return None if arguments.timeout is None else arguments.timeout / 1000


def sentinels(arguments):
    return [(host, int(port)) for host, port in (one.rsplit(":", 1) for one in arguments.sentinel.split(","))]


def say(*words):
    """Prints a line in one write, as several threads print."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Ready(logging.Handler):
    """Prints `ready` when the worker logs it, and its warnings to the standard error."""

    def emit(self, record):
        if record.getMessage().startswith("ready;"):
            say("ready")
        elif record.levelno >= logging.WARNING:
            print(record.getMessage(), file=sys.stderr, flush=True)


def listen():
    """Logs, and after the worker's end ignores a further SIGTERM, as the worker puts this back."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log = logging.getLogger("tickwheel")
    log.setLevel(logging.INFO)
    log.addHandler(Ready())


def act_of(job):
    """Returns the words of the act of this attempt. In a file a payload is one value, with an act in each
    line."""
    acts = job.payload if len(job.payload) > 1 else job.payload[0].split(b"\n")
    act, _, rest = acts[min(job.attempt, len(acts)) - 1].decode().partition(" ")
    return act, rest


def end(job, act, rest):
    """The end of an act, which is the same with threads and asyncio: prints it, and raises its error."""
    if act == "show":
        say("shown", job.queue, job.id, hashlib.sha1(b"\n".join(job.payload)).hexdigest())
    if act == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    say("end", job.queue, job.id, job.attempt)
    word, _, text = rest.partition(" ")
    if act == "fail":
        raise RuntimeError(rest)
    if act == "ackthenfail":
        raise RuntimeError("after its acknowledgement")
    if act == "untilfail":
        raise RuntimeError(text)
    if act == "notyet" and not os.path.exists(word):
        raise tickwheel.Back(int(text) / 1000)
    if act == "retry":
        raise tickwheel.Retry(int(word) / 1000, text)
    if act == "dead":
        raise tickwheel.Dead(rest)


WORDS = {tickwheel.NotYours: "void", tickwheel.ReplyLost: "lost", tickwheel.EffectError: "broken"}


def is_acking(act):
    return act.startswith("ackthen") or act == "untilack"


def effect_of(act, rest):
    """Returns the script of an act, and its keys."""
    key, _, script = (rest.partition(" ")[2] if act == "untilack" else rest).partition(" ")
    return script, [key]


@contextlib.contextmanager
def acking(job):
    """Prints the error of ack_then()."""
    try:
        yield
    except tuple(WORDS) as error:
        say(WORDS[type(error)], job.queue, job.id)
        raise


POLL_S = 0.01


def handle(job):
    say("begin", job.queue, job.id, job.attempt)
    act, rest = act_of(job)
    while act.startswith("until") and not os.path.exists(rest.split()[0]):
        if job.wait(POLL_S):
            if job.not_yours:
                say("not-yours", job.queue, job.id, job.attempt)
            return
    if is_acking(act):
        with acking(job):
            say("acked", job.queue, job.id, job.ack_then(*effect_of(act, rest)))
    end(job, act, rest)


def client_of(arguments):
    if arguments.sentinel:
        sentinel = redis.sentinel.Sentinel(sentinels(arguments), socket_timeout=1)
        return sentinel.master_for(arguments.service)
    if arguments.cluster:
        return redis.RedisCluster.from_url(arguments.url, socket_timeout=1)
    return tickwheel.connect(arguments.url)


def stopped(counts):
    say("stopped", *map("{}={}".format, counts._fields, counts))


def main():
    chosen = arguments()
    listen()
    try:
        worker = tickwheel.Worker(client_of(chosen), **options_of(chosen))
        worker.add(handle, *chosen.queues, timeout=limit_of(chosen))
        stopped(worker.run())
    except (tickwheel.TickwheelError, redis.RedisError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
