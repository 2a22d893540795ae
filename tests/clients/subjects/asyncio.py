# SPDX-License-Identifier: MIT
"""The subject of the library for Python with asyncio; python.py has the parts that both share."""
import asyncio
import importlib.util
import math
import os
import sys

import redis.asyncio
import redis.asyncio.sentinel
from eventually import wait_until_async

import tickwheel.aio


def sibling():
    """Loads python.py. This folder is not on the path, since its asyncio.py would hide the library's."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python.py")
    spec = importlib.util.spec_from_file_location("subject_in_python", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


common = sibling()


async def handle(job):
    common.say("begin", job.queue, job.id, job.attempt)
    act, rest = common.act_of(job)
    try:
        if act.startswith("until"):
            await wait_until_async(lambda: os.path.exists(rest.split()[0]), patience=math.inf)
    except asyncio.CancelledError:
        if job.not_yours:
            common.say("not-yours", job.queue, job.id, job.attempt)
        raise
    if common.is_acking(act):
        with common.acking(job):
            common.say("acked", job.queue, job.id, await job.ack_then(*common.effect_of(act, rest)))
    common.end(job, act, rest)


def client_of(arguments):
    if arguments.sentinel:
        sentinel = redis.asyncio.sentinel.Sentinel(common.sentinels(arguments), socket_timeout=1)
        return sentinel.master_for(arguments.service)
    if arguments.cluster:
        return redis.asyncio.RedisCluster.from_url(arguments.url, socket_timeout=1)
    return tickwheel.aio.connect(arguments.url)


async def work(arguments):
    client = client_of(arguments)
    worker = tickwheel.aio.Worker(client, **common.options_of(arguments))
    worker.add(handle, *arguments.queues, timeout=common.limit_of(arguments))
    try:
        common.stopped(await worker.run())
    finally:
        await client.close()


def main():
    common.listen()
    try:
        asyncio.run(work(common.arguments()))
    except (tickwheel.TickwheelError, redis.RedisError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
