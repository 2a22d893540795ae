# SPDX-License-Identifier: MIT
"""Delayed and durable tasks in Redis with the module Tickwheel.

    import redis, tickwheel

    client = redis.Redis()
    orders = tickwheel.Queue(client, "orders")
    orders.put("order:42", "42", delay=1800)

    worker = tickwheel.Worker(client)

    @worker.task("orders")
    def expire(job):
        print(job.text, "was not paid")

    worker.run()  # until SIGTERM or SIGINT

Times and delays are seconds: numbers or timedelta; a moment is Unix seconds or an aware datetime.
`tickwheel.aio` has the same for asyncio. docs/python.md explains all of it."""
from ._errors import Back, Dead, Retry, WorkerError
from ._tasks import Counts, DeadTask, Job, Task
from ._words import Backoff
from .queue import Queue
from .worker import Worker

__all__ = ["Back", "Backoff", "Counts", "Dead", "DeadTask", "Job", "Queue", "Retry", "Task", "Worker",
           "WorkerError"]
__version__ = "1.0.0"
