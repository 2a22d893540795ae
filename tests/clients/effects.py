# SPDX-License-Identifier: MIT
"""Handlers that acknowledge their jobs in a transaction over a connection of their own, with threads and with
asyncio: the acts, and what they leave in the file."""
import contextlib
import sqlite3

# The ids of the jobs, by the count to which each attempt belongs.
ENDS = {"done": ["afterwards", "alone", "early", "good", "twice"],
        "failed": ["other", "raises", "rollback", "server", "unused", "wrong"],
        "not_yours": ["cancelled", "commit", "script"]}
ERRORS = {"raises": "ValueError: no", "unused": "RuntimeError: job.ack_on() was called without a block",
          "rollback": "RuntimeError: the transaction of job.ack_on() was ended within its block",
          "wrong": "TypeError: connection is 'shop.db'"}


def new_effects(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE effects(id TEXT)")


def effects_of(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [id for id, in db.execute("SELECT id FROM effects ORDER BY id")]


def note(db, job):
    db.execute("INSERT INTO effects VALUES (?)", (job.id,))


def act(job, path):
    """Does the act that the id of the job names."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        act_of(job, db)[job.id]()


def act_of(job, db):
    def within(then=lambda: None):
        with job.ack_on(db):
            note(db, job)
            then()

    def early():
        note(db, job)
        with job.ack_on(db) as same:
            assert same is db and db.in_transaction

    def alone():
        db.isolation_level = None
        within()

    def fails():
        raise ValueError("no")

    def cancelled():
        db.execute("INSERT INTO tw_cancel(queue, id) VALUES (?, ?)", (job.queue, job.id.encode()))
        db.commit()
        early()

    def other():
        with contextlib.closing(sqlite3.connect(":memory:")) as elsewhere, job.ack_on(elsewhere):
            pass

    return {"good": within, "early": early, "alone": alone, "raises": lambda: within(fails),
            "commit": lambda: within(db.commit), "rollback": lambda: within(db.rollback), "other": other,
            "script": lambda: within(lambda: db.executescript("SELECT 1")), "unused": lambda: job.ack_on(db),
            "afterwards": lambda: (within(), fails()), "twice": lambda: (within(), within()),
            "wrong": lambda: job.ack_on("shop.db"), "cancelled": cancelled}


def names():
    return sum(ENDS.values(), [])


def judge(path, counts, errors):
    """`errors` has the error of each task that is left, by its id."""
    assert {name: len(ids) for name, ids in ENDS.items()} == {
        name: count for name, count in counts._asdict().items() if count}
    assert effects_of(path) == sorted([*ENDS["done"], "commit", "script"])
    assert sorted(errors) == ENDS["failed"]
    for id, said in ERRORS.items():
        assert errors[id].startswith(said), errors
