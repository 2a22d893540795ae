# SPDX-License-Identifier: MIT
"""Delayed and durable tasks, in Redis with the module Tickwheel or in an SQLite file.

    import tickwheel

    client = tickwheel.connect("redis://localhost:6379")  # or "sqlite:///shop.db"
    orders = tickwheel.Queue(client, "orders")
    orders.put("order:42", "42", delay=1800)

    worker = tickwheel.Worker(client)

    @worker.task("orders")
    def expire(job):
        print(job.text, "was not paid")

    worker.run()  # until SIGTERM or SIGINT

Times and delays are seconds: numbers or timedelta; a moment is Unix seconds or an aware datetime.
`tickwheel.aio` has the same for asyncio. docs/python.md explains all of it."""
from typing import Any

from . import _connect
from ._errors import (Back, Dead, EffectError, Elsewhere, Full, NoRights, NotAQueue, NotYours, ReplyLost, Retry,
                      TaskIsDead, TickwheelError, Unavailable, WorkerError, WrongArgument, WrongFormat)
from ._file import File
from ._tasks import Counts, DeadTask, Job, Stats, Task
from ._words import Backoff, Values
from .queue import Queue
from .worker import Worker

__all__ = ["Back", "Backoff", "Counts", "Dead", "DeadTask", "EffectError", "Elsewhere", "File", "Full", "Job",
           "NoRights", "NotAQueue", "NotYours", "Queue", "ReplyLost", "Retry", "Stats", "Task", "TaskIsDead",
           "TickwheelError", "Unavailable", "Values", "Worker", "WorkerError", "WrongArgument", "WrongFormat",
           "connect"]
__version__ = "1.0.0"


def connect(url: str, **options: Any) -> Any:
    """Returns the client of a home of tasks, for Queue and Worker: one of redis-py, or a File.

    `url`: redis://HOST:PORT/DB, rediss:// with TLS, unix:///PATH; redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB,
    the primary that sentinels name; redis+cluster://HOST:PORT; sqlite:///FILE in the working folder, or
    sqlite:////FOLDER/FILE. `options` are those of the client's class. Raises TypeError or ValueError for
    another url, and ModuleNotFoundError for a server where redis-py is not installed."""
    return _connect.connect(url, File, "redis", options)
