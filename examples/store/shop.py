#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A shop in one SQLite file: orders that expire unless they are paid. There is no server.

    shop.py place 42 --within 5000     order 42 is placed, and expires in 5 s unless it is paid
    shop.py extend 42 --within 60000   order 42 has a minute from now, if it did not have longer
    shop.py pay 42                     order 42 is paid, and will not expire
    shop.py work                       a worker: lets unpaid orders expire, until Ctrl-C

The order and its timeout are rows of the same file, and change in one transaction. So there is never an order
without its timeout, nor a timeout without its order, whatever is killed at whatever moment. They are put, moved
and cancelled by plain SQL, as a program in any language can do it. shop.js does so in JavaScript, and both
can work on one file. The worker is that of our package.

A file that is new needs the tables of a store. The extension tickwheel_sqlite makes them (Debian:
libsqlite3-mod-tickwheel); TICKWHEEL_SQLITE in the environment says where it is. After `make install` that is

    export TICKWHEEL_SQLITE=$(pkg-config --variable=sqlite_extension tickwheel_store)

When the tables are there, no extension is needed.
"""
import argparse
import contextlib
import os
import sqlite3
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import tickwheel  # noqa: E402  (of this tree, unless it is installed)

QUEUE = "orders"


def open_shop(path):
    """Opens the file, and makes its tables if it is new."""
    db = sqlite3.connect(path, timeout=5, isolation_level=None)  # we write BEGIN and COMMIT ourselves
    db.execute("PRAGMA synchronous=FULL")  # a commit is on the disk when it returns
    if db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'tw_put'").fetchone() == (0,):
        if not hasattr(db, "enable_load_extension"):
            sys.exit(f"shop.py: {sys.executable} loads no extensions of SQLite: expected Debian's python3")
        db.enable_load_extension(True)
        db.load_extension(os.environ.get("TICKWHEEL_SQLITE", "tickwheel_sqlite"))
        db.execute("SELECT tw_install()").fetchone()
    db.execute("CREATE TABLE IF NOT EXISTS orders(id INTEGER PRIMARY KEY, state TEXT NOT NULL)")
    return db


@contextlib.contextmanager
def transaction(db):
    """IMMEDIATE waits for its turn to write. A plain BEGIN that has read first may fail at once."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def now_ms():
    return time.time_ns() // 1000000


def task_of(order):
    return f"order:{order}"


def place(db, options):
    order, within = options.order, options.within
    with transaction(db):
        db.execute("INSERT INTO orders VALUES (?, 'placed')", (order,))
        db.execute("INSERT INTO tw_put(queue, id, due_ms) VALUES (?, ?, ?)",
                   (QUEUE, task_of(order), now_ms() + within))
    print(f"order {order} is placed; it expires in {within} ms unless it is paid")


def pay(db, options):
    order = options.order
    with transaction(db):
        paid = db.execute("UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'placed'",
                          (order,)).rowcount
        if paid:
            db.execute("INSERT INTO tw_cancel(queue, id) VALUES (?, ?)", (QUEUE, task_of(order)))
    print(f"order {order} is paid" if paid else f"order {order} waits for no payment")


def extend(db, options):
    """GT makes the time to pay longer, never shorter. RETURNING has a row only if the task was moved."""
    order, within = options.order, options.within
    moved = db.execute("INSERT INTO tw_move(queue, id, due_ms, condition) VALUES (?, ?, ?, 'GT') RETURNING id",
                       (QUEUE, task_of(order), now_ms() + within)).fetchall()
    print(f"order {order} has {within} ms from now" if moved else f"order {order} has longer than that")


def work(_, options):
    """Runs a worker. Start as many as you like: each order goes to one of them."""
    worker = tickwheel.Worker(tickwheel.File(options.file))

    @worker.task(QUEUE)
    def expire(job):
        """An order that is paid while its job is on the way stays paid. To expire twice does no harm."""
        order = job.id.removeprefix("order:")
        with contextlib.closing(open_shop(options.file)) as db, transaction(db):
            expired = db.execute("UPDATE orders SET state = 'expired' WHERE id = ? AND state = 'placed'",
                                 (order,)).rowcount
        print(f"order {order} " + ("was not paid: expired" if expired else "is paid"), flush=True)
        if options.count and worker.counts.done + 1 >= options.count:
            worker.stop()

    counts = worker.run()
    print(f"stopped; {counts.done} done, {counts.failed} failed")


def main():
    actions = {"place": place, "pay": pay, "extend": extend, "work": work}
    parser = argparse.ArgumentParser(description="orders that expire unless they are paid")
    parser.add_argument("action", choices=actions)
    parser.add_argument("order", nargs="?", type=int)
    parser.add_argument("--within", type=int, default=5000, metavar="MS",
                        help="time to pay, in ms (default: 5000)")
    parser.add_argument("--count", type=int, default=0, help="stop after so many orders (default: never)")
    parser.add_argument("--file", default="shop.db")
    options = parser.parse_args()
    if options.order is None and options.action != "work":
        parser.error(f"{options.action}: expected the number of an order")
    try:
        actions[options.action](open_shop(options.file), options)
    except (sqlite3.Error, tickwheel.WorkerError) as error:
        sys.exit(f"shop.py: {options.file}: {error}")


main()
