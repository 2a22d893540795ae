# SPDX-License-Identifier: MIT
"""Queues and workers for asyncio, with the clients of redis.asyncio.

    import asyncio, redis.asyncio, tickwheel.aio

    async def main():
        worker = tickwheel.aio.Worker(redis.asyncio.Redis())

        @worker.task("orders")
        async def expire(job):
            print(job.text, "was not paid")

        await worker.run()  # until SIGTERM or SIGINT

    asyncio.run(main())
"""
from typing import Any

from .. import _connect
from .._errors import (Back, Dead, EffectError, Elsewhere, Full, NoRights, NotAQueue, NotYours, ReplyLost,
                       Retry, TaskIsDead, TickwheelError, Unavailable, WorkerError, WrongArgument, WrongFormat)
from .._tasks import Counts, DeadTask, Job, Stats, Task
from .._words import Backoff, Values
from ._file import File
from .queue import Queue
from .worker import Worker

__all__ = ["Back", "Backoff", "Counts", "Dead", "DeadTask", "EffectError", "Elsewhere", "File", "Full", "Job",
           "NoRights", "NotAQueue", "NotYours", "Queue", "ReplyLost", "Retry", "Stats", "Task", "TaskIsDead",
           "TickwheelError", "Unavailable", "Values", "Worker", "WorkerError", "WrongArgument", "WrongFormat",
           "connect"]


def connect(url: str, **options: Any) -> Any:
    """Returns a client of redis.asyncio, or a File; see tickwheel.connect."""
    return _connect.connect(url, File, "redis.asyncio", options)
