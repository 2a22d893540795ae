#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A shop in one SQLite file: orders that expire unless they are paid. There is no server.

    shop.py place 42 --within 5000     order 42 is placed, and expires in 5 s unless it is paid
    shop.py extend 42 --within 60000   order 42 has a minute from now, if it did not have longer
    shop.py pay 42                     order 42 is paid, and will not expire
    shop.py work                       a worker: lets unpaid orders expire, until Ctrl-C

The order and its timeout are rows of the same file, and change in one transaction. So there is never an order
without its timeout, nor a timeout without its order, whatever is killed at whatever moment. shop.js is the same
in JavaScript, and both can work on one file.

A new file needs the tables of the tasks. The extension tickwheel_sqlite makes them, if SQLite finds it (Debian:
libsqlite3-mod-tickwheel), and otherwise `tickwheel put --store shop.db </dev/null`.
"""
import argparse
import contextlib
import os
import sqlite3
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import tickwheel  # noqa: E402  (of this tree, unless it is installed)

QUEUE = "orders"


def open_orders(path):
    """Returns a connection for a `with`, which closes it at its end."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous=FULL")  # a commit is on the disk when it returns
    db.execute("CREATE TABLE IF NOT EXISTS orders(id INTEGER PRIMARY KEY, state TEXT NOT NULL)")
    return contextlib.closing(db)


def place(timeouts, options):
    order, within = options.order, options.within
    with open_orders(options.file) as db, db:  # commits at the end, or rolls back after an error
        db.execute("INSERT INTO orders VALUES (?, 'placed')", (order,))
        timeouts.on(db).put(f"order:{order}", str(order), delay=within / 1000)
    return f"order {order} is placed; it expires in {within} ms unless it is paid"


def pay(timeouts, options):
    order = options.order
    with open_orders(options.file) as db, db:
        paid = db.execute("UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'placed'",
                          (order,)).rowcount
        timeouts.on(db).cancel(f"order:{order}")
    return f"order {order} is paid" if paid else f"order {order} waits for no payment"


def extend(timeouts, options):
    """Makes the time to pay longer, never shorter."""
    order, within = options.order, options.within
    moved = timeouts.move(f"order:{order}", delay=within / 1000, condition="gt")
    return {True: f"order {order} has {within} ms from now", False: f"order {order} has longer than that",
            None: f"order {order} waits for no payment"}[moved]


def work(timeouts, options):
    """Runs a worker. Start as many as you like: each order goes to one of them."""
    worker = tickwheel.Worker(timeouts.client)

    @worker.task(QUEUE)
    def expire(job):
        """The transaction acknowledges the job, too. An order that is paid meanwhile stays paid."""
        with open_orders(options.file) as db, job.ack_on(db):
            expired = db.execute("UPDATE orders SET state = 'expired' WHERE id = ? AND state = 'placed'",
                                 (job.text,)).rowcount
        outcome = "was not paid: expired" if expired else "waits for no payment"
        print(f"order {job.text} {outcome}", flush=True)

    counts = worker.run()
    return f"stopped; {counts.done} done, {counts.failed} failed"


def main():
    actions = {"place": place, "pay": pay, "extend": extend, "work": work}
    parser = argparse.ArgumentParser(description="orders that expire unless they are paid")
    parser.add_argument("action", choices=actions)
    parser.add_argument("order", nargs="?", type=int)
    parser.add_argument("--within", type=int, default=5000, metavar="MS", help="time to pay (default: 5000)")
    parser.add_argument("--file", default="shop.db")
    options = parser.parse_args()
    if options.order is None and options.action != "work":
        parser.error(f"{options.action}: expected the number of an order")
    try:
        timeouts = tickwheel.Queue(tickwheel.File(options.file), QUEUE)
        print(actions[options.action](timeouts, options))
    except (sqlite3.Error, ValueError, tickwheel.TickwheelError) as error:
        sys.exit(f"shop.py: {options.file}: {error}")


main()
