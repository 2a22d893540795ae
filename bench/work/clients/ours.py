# SPDX-License-Identifier: MIT
"""Our client for Python, with threads and with asyncio. tally.py has the arguments."""
import asyncio
import sys

import redis
import redis.asyncio
import tickwheel
import tickwheel.aio

from tally import IN_FLIGHT, QUEUE, tally


def put(port, payload):
    client = redis.Redis(port=port)
    queue = tickwheel.Queue(client, QUEUE)
    client.ping()
    for some in tally.batches():
        with client.pipeline(transaction=False) as pipe:
            through = queue.on(pipe)
            for number in some:
                through.put(f"job-{number}", payload)
            pipe.execute()


def work(port):
    worker = tickwheel.Worker(redis.Redis(port=port), jobs=IN_FLIGHT)
    worker.add(lambda job: tally.called(), QUEUE)
    worker.run()


async def put_by_asyncio(port, payload):
    client = redis.asyncio.Redis(port=port)
    queue = tickwheel.aio.Queue(client, QUEUE)
    await client.ping()
    for some in tally.batches():
        async with client.pipeline(transaction=False) as pipe:
            through = queue.on(pipe)
            for number in some:
                await through.put(f"job-{number}", payload)
            await pipe.execute()


async def work_by_asyncio(port):
    client = redis.asyncio.Redis(port=port)
    worker = tickwheel.aio.Worker(client, jobs=IN_FLIGHT)

    @worker.task(QUEUE)
    async def handle(_job):
        tally.called()

    await worker.run()
    await client.close()


def main():
    side, mode, port, _, payload = tally.asked(sys.argv[1:])
    if side == "asyncio":
        asyncio.run(put_by_asyncio(port, payload) if mode == "put" else work_by_asyncio(port))
    elif mode == "put":
        put(port, payload)
    else:
        work(port)


main()
