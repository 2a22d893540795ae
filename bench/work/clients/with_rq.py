# SPDX-License-Identifier: MIT
"""rq: enqueue_many(), and a worker that calls the handler itself (SimpleWorker), or forks for each job (Worker,
rq's default). A job is removed when it is done, as in the other queues (result_ttl=0). tally.py has the
arguments."""
import sys

import redis
import rq

from tally import QUEUE, handle, tally

WORKERS = {"rq": rq.SimpleWorker, "rq_fork": rq.Worker}


def put(client, payload):
    queue = rq.Queue(QUEUE, connection=client)
    client.ping()
    for some in tally.batches():
        queue.enqueue_many([rq.Queue.prepare_data(handle, args=(payload,), result_ttl=0) for _ in some])


def main():
    side, mode, port, _, payload = tally.asked(sys.argv[1:])
    client = redis.Redis(port=port)
    if mode == "put":
        put(client, payload)
    else:
        WORKERS[side]([QUEUE], connection=client, log_job_description=False).work(logging_level="WARNING")


main()
