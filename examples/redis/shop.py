#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A shop in Redis: orders that expire unless they are paid.

    shop.py place 42 --within 5000     order 42 is placed, and expires in 5 s unless it is paid
    shop.py extend 42 --within 60000   order 42 has a minute from now, if it did not have longer
    shop.py pay 42                     order 42 is paid, and will not expire
    shop.py work                       a worker: lets unpaid orders expire, until Ctrl-C

The order and its timeout change in one transaction, so no crash can come between the two changes. shop.js is
the same in JavaScript, and both can work on one server.

The braces in {shop} are part of each key's name. In a cluster, keys with the same text in braces lie in one
slot, as a transaction needs them to; on one server they have no effect.
"""
import argparse
import os
import sys

import redis  # Debian: python3-redis; elsewhere: pip install redis

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import tickwheel  # noqa: E402  (of this tree, unless it is installed)

QUEUE = "{shop}:timeouts"

# An order that is paid while its job is on the way stays paid. To expire twice does no harm.
EXPIRE = """
local state = redis.call('HGET', KEYS[1], 'state')
if state == 'placed' then redis.call('HSET', KEYS[1], 'state', 'expired') end
return state
"""


def key_of(order):
    return f"{{shop}}:order:{order}"


def place(client, timeouts, options):
    order, within = options.order, options.within
    with client.pipeline() as both:
        both.hset(key_of(order), "state", "placed")
        timeouts.on(both).put(f"order:{order}", order, delay=within / 1000)
        both.execute()
    return f"order {order} is placed; it expires in {within} ms unless it is paid"


def pay(client, timeouts, options):
    with client.pipeline() as both:
        both.hset(key_of(options.order), "state", "paid")
        timeouts.on(both).cancel(f"order:{options.order}")
        _, [cancelled] = both.execute()
    return f"order {options.order} is paid" + ("" if cancelled == 1 else ", though its time was up")


def extend(_, timeouts, options):
    """Makes the time to pay longer, never shorter."""
    order, within = options.order, options.within
    moved = timeouts.move(f"order:{order}", delay=within / 1000, condition="gt")
    return {True: f"order {order} has {within} ms from now", False: f"order {order} has longer than that",
            None: f"order {order} waits for no payment"}[moved]


def work(client, *_):
    """Runs a worker. Start as many as you like: each order goes to one of them."""
    worker = tickwheel.Worker(client)

    @worker.task(QUEUE)
    def expire(job):
        state = client.eval(EXPIRE, 1, key_of(job.text))
        outcome = "was not paid: expired" if state == "placed" else f"is {state}"
        print(f"order {job.text} {outcome}", flush=True)

    counts = worker.run()
    return f"stopped; {counts.done} done, {counts.failed} failed"


def main():
    actions = {"place": place, "extend": extend, "pay": pay, "work": work}
    parser = argparse.ArgumentParser(description="orders that expire unless they are paid")
    parser.add_argument("action", choices=actions)
    parser.add_argument("order", nargs="?")
    parser.add_argument("--within", type=int, default=5000, metavar="MS", help="time to pay (default: 5000)")
    parser.add_argument("--url", default=os.environ.get("REDIS_URL", "redis://127.0.0.1:7379"),
                        help="default: $REDIS_URL, or redis://127.0.0.1:7379, the server of make serve")
    options = parser.parse_args()
    if options.order is None and options.action != "work":
        parser.error(f"{options.action}: expected the number of an order")
    try:
        client = tickwheel.connect(options.url, decode_responses=True)
        print(actions[options.action](client, tickwheel.Queue(client, QUEUE), options))
    except (redis.exceptions.RedisError, ValueError, tickwheel.TickwheelError) as error:
        sys.exit(f"shop.py: {error}")


main()
