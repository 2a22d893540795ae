#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A shop that gives its customers some time to pay.

    shop.py place 42 --within 5000     order 42 is placed, and expires in 5 s unless it is paid
    shop.py extend 42 --within 60000   order 42 has a minute from now instead
    shop.py pay 42                     order 42 is paid, and will not expire

The order and its timeout change in one transaction, so no crash can come between the two changes. The braces in
{shop} are part of each key's name. In a cluster, keys with the same text in braces lie in one slot, as a
transaction needs them to; on one server they have no effect. consumer.py and consumer.js do the work when the
time is up.
"""
import argparse
import sys

try:
    import redis
except ImportError:
    sys.exit(
        f"{sys.executable} has no redis client: "
        "install it (Debian: python3-redis; elsewhere: pip install redis)"
    )

SCHEDULE, TARGET = "{shop}:timeouts", "{shop}:unpaid"


def place(r, order, within):
    with r.pipeline(transaction=True) as both:
        both.hset(f"{{shop}}:order:{order}", "state", "placed")
        both.execute_command("TW.ADD", SCHEDULE, TARGET, f"order:{order}", "IN", within, "PAYLOAD", "order",
                             order)
        both.execute()
    return f"order {order} is placed; it expires in {within} ms unless it is paid"


def pay(r, order, _):
    with r.pipeline(transaction=True) as both:
        both.hset(f"{{shop}}:order:{order}", "state", "paid")
        both.execute_command("TW.CANCEL", SCHEDULE, f"order:{order}")
        _, cancelled = both.execute()
    return f"order {order} is paid" if cancelled else f"order {order} is paid, though its time was up"


def extend(r, order, within):
    """GT makes the time to pay longer, never shorter. 1: moved; 0: the order has longer still; None: no
    timeout."""
    moved = r.execute_command("TW.MOVE", SCHEDULE, f"order:{order}", "IN", within, "GT")
    return {1: f"order {order} has {within} ms from now", 0: f"order {order} has longer than that",
            None: f"order {order} waits for no payment"}[moved]


def main():
    parser = argparse.ArgumentParser(description="orders that expire unless they are paid")
    parser.add_argument("action", choices=["place", "pay", "extend"])
    parser.add_argument("order")
    parser.add_argument("--within",
                        type=int,
                        default=5000,
                        metavar="MS",
                        help="time to pay, in ms (default: 5000)")
    parser.add_argument("--port", type=int, default=7379)
    options = parser.parse_args()
    r = redis.Redis(host="127.0.0.1", port=options.port, decode_responses=True)
    action = {"place": place, "pay": pay, "extend": extend}[options.action]
    try:
        print(action(r, options.order, options.within))
    except redis.exceptions.RedisError as error:
        sys.exit(f"shop.py: {error}")


main()
