# SPDX-License-Identifier: MIT
"""Celery with Redis as its broker, no results, and no events between workers. The pool of the worker is solo,
which calls the handler itself, or prefork, Celery's default. The prefetch multiplier lets the worker have a
hundred jobs at a time. tally.py has the arguments."""
import sys

import celery

from tally import IN_FLIGHT, QUEUE, tally

POOLS = {"celery": "solo", "celery_prefork": "prefork"}
OPTIONS = ("--concurrency=1", "--loglevel=WARNING", "--without-gossip", "--without-mingle",
           "--without-heartbeat")


def put(app, task, payload):
    """Celery has no call that sends many jobs. One producer is kept for all of them, as its guide to calling
    tasks advises."""
    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.ensure_connection()
        for some in tally.batches():
            for _ in some:
                task.apply_async((payload,), producer=producer)


def main():
    side, mode, port, _, payload = tally.asked(sys.argv[1:])
    app = celery.Celery("bench", broker=f"redis://127.0.0.1:{port}/0")
    app.conf.update(task_default_queue=QUEUE, task_ignore_result=True, worker_prefetch_multiplier=IN_FLIGHT)

    @app.task(name="handle")
    def handle(_payload):
        tally.called()

    if mode == "put":
        put(app, handle, payload)
    else:
        app.worker_main(["worker", f"--pool={POOLS[side]}", *OPTIONS])


main()
