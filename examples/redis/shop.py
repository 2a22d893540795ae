#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A shop that gives its customers some time to pay.

    shop.py place 42 --within 5000     order 42 is placed, and expires in 5 s unless it is paid
    shop.py extend 42 --within 60000   order 42 has a minute from now instead
    shop.py pay 42                     order 42 is paid, and will not expire
    shop.py work                       a worker: lets unpaid orders expire, until Ctrl-C

The order and its timeout change in one transaction, so no crash can come between the two changes. The braces in
{shop} are part of each key's name. In a cluster, keys with the same text in braces lie in one slot, as a
transaction needs them to; on one server they have no effect.

With `place --stream` the timeout comes to a Stream instead. consumer.py and consumer.js are consumers of it.
"""
import argparse
import os
import sys

try:
    import redis
except ImportError:
    sys.exit(
        f"{sys.executable} has no redis client: "
        "install it (Debian: python3-redis; elsewhere: pip install redis)"
    )

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import tickwheel  # noqa: E402  (of this tree, unless it is installed)

QUEUE, STREAM = "{shop}:timeouts", "{shop}:unpaid"

# An order that is paid while its job is on the way stays paid. To expire twice does no harm.
EXPIRE = """
local state = redis.call('HGET', KEYS[1], 'state')
if state == 'placed' then redis.call('HSET', KEYS[1], 'state', 'expired') end
return state
"""


def key_of(order):
    return f"{{shop}}:order:{order}"


def place(r, options):
    order, within = options.order, options.within
    with r.pipeline(transaction=True) as both:
        both.hset(key_of(order), "state", "placed")
        if options.stream:
            both.execute_command("TW.SEND", QUEUE, STREAM, f"order:{order}", "IN", within, "PAYLOAD", "order",
                                 order)
        else:
            tickwheel.Queue(both, QUEUE).put(f"order:{order}", order, delay=within / 1000)
        both.execute()
    return f"order {order} is placed; it expires in {within} ms unless it is paid"


def pay(r, options):
    with r.pipeline(transaction=True) as both:
        both.hset(key_of(options.order), "state", "paid")
        tickwheel.Queue(both, QUEUE).cancel(f"order:{options.order}")
        _, [cancelled] = both.execute()
    return f"order {options.order} is paid" + ("" if cancelled == 1 else ", though its time was up")


def extend(r, options):
    """Makes the time to pay longer, never shorter."""
    order, within = options.order, options.within
    moved = tickwheel.Queue(r, QUEUE).move(f"order:{order}", delay=within / 1000, condition="gt")
    return {True: f"order {order} has {within} ms from now", False: f"order {order} has longer than that",
            None: f"order {order} waits for no payment"}[moved]


def work(r, options):
    """Runs a worker. Start as many as you like: each order goes to one of them."""
    worker = tickwheel.Worker(r, jobs=options.jobs, lease=options.lease / 1000)
    expire_if_unpaid = r.register_script(EXPIRE)

    @worker.task(QUEUE)
    def expire(job):
        state = expire_if_unpaid(keys=[key_of(job.text)])
        outcome = "was not paid: expired" if state == "placed" else f"is {state}"
        print(f"order {job.text} {outcome}", flush=True)
        if options.count and worker.counts.done + 1 >= options.count:
            worker.stop()

    counts = worker.run()
    return f"stopped; {counts.done} done, {counts.failed} failed"


def arguments():
    parser = argparse.ArgumentParser(description="orders that expire unless they are paid")
    parser.add_argument("--url", default=os.environ.get("REDIS_URL", "redis://127.0.0.1:7379"),
                        help="redis://user:password@host:port/db, rediss:// with TLS, unix://path "
                             "(default: $REDIS_URL, or redis://127.0.0.1:7379, the server of make serve)")
    actions = parser.add_subparsers(dest="action", required=True, metavar="place|pay|extend|work")
    for name, action in (("place", place), ("extend", extend), ("pay", pay)):
        one = actions.add_parser(name)
        one.set_defaults(act=action)
        one.add_argument("order")
        if name != "pay":
            one.add_argument("--within", type=int, default=5000, metavar="MS",
                             help="time to pay, in ms (default: 5000)")
        if name == "place":
            one.add_argument("--stream", action="store_true",
                             help="deliver the timeout to a Stream, for consumer.py")
    one = actions.add_parser("work")
    one.set_defaults(act=work)
    one.add_argument("--jobs", type=int, default=4, help="orders at once (default: 4)")
    one.add_argument("--lease", type=int, default=30000, metavar="MS",
                     help="if this worker dies, another one gets its order after so long (default: 30000)")
    one.add_argument("--count", type=int, default=0, help="stop after so many orders (default: never)")
    return parser.parse_args()


def main():
    options = arguments()
    try:
        print(options.act(redis.Redis.from_url(options.url, decode_responses=True), options))
    except (redis.exceptions.RedisError, ValueError, tickwheel.WorkerError) as error:
        sys.exit(f"shop.py: {error}")


main()
