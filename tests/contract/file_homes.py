# SPDX-License-Identifier: MIT
"""The homes that are a file. Another program takes part in one of them: it uses SQL."""
import sqlite3
import subprocess

from eventually import PATIENCE
from words import conditions_of, read_options, shift, show

BEGIN = 4102444800000  # as in store_home.c


class Store:
    """A run of a file, in a process of its own for each scenario (store_home.c)."""
    lacks, runs = ("store", ), ("store", )

    def __init__(self, program):
        self.program = program

    def __enter__(self):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait(PATIENCE) != 0:
            raise SystemExit(f"{self.program} has ended with {self.process.returncode}")

    def __call__(self, line):
        """A verb that a home does in another way than C is a method of it."""
        verb, *words = shift(line, BEGIN).split()
        own = getattr(self, f"do_{verb}", None)
        return [shift(reply, -BEGIN) for reply in (own(*words) if own else self.ask(verb, *words))]

    def ask(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        reply = []
        while (line := self.process.stdout.readline()) != ".\n":
            if not line:
                raise SystemExit(f"{self.program} has ended after {reply}")
            reply.append(line.rstrip("\n"))
        return reply


# ---- SQL ----------------------------------------------------------------------------------------------------

COLUMNS = {"every": "every_ms", "times": "times", "missed": "missed", "maxlate": "max_late_ms",
           "tries": "tries", "backoff": "backoff_ms", "payload": "payload"}
LOOK = """
SELECT shown.state, due_ms - :begin AS due, next_ms - :begin AS next, shown.attempt, lapses, every_ms AS every,
    times, CAST(shown.payload AS TEXT) AS payload, shown.error, replaced
FROM tw_task JOIN tw_list AS shown ON shown.id = CAST(tw_task.id AS TEXT) WHERE tw_task.id = CAST(:id AS BLOB)
"""


class Sql(Store):
    """Another program files, moves, cancels and looks in plain SQL. Its clock is that of the scenario too."""
    lacks, runs = ("store", "sql"), ("store", "sql")

    def __enter__(self):
        super().__enter__()
        self.now = BEGIN
        self.db = sqlite3.connect(self.ask("file")[0], timeout=PATIENCE, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.create_function("julianday", 1, lambda _: 2440587.5 + self.now / 86400000)
        return self

    def __exit__(self, *failure):
        self.db.close()
        super().__exit__(*failure)

    def insert(self, view, **columns):
        sql = f"INSERT INTO {view}({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) RETURNING id"
        try:
            return "yes" if self.db.execute(sql, [*columns.values()]).fetchall() else "no"
        except sqlite3.IntegrityError as error:
            return f"error {str(error).removeprefix(f'{view}: ')}"

    def file(self, view, name, options, **columns):
        """Puts or moves."""
        due_ms = BEGIN + int(options["at"]) if "at" in options else self.now + int(options["in"])
        condition = " ".join(conditions_of(options)).upper() or None
        return self.insert(view, queue="q", id=name, due_ms=due_ms, condition=condition, **columns)

    def do_put(self, name, *words):
        options = read_options(words)
        columns = {column: options[option] for option, column in COLUMNS.items() if option in options}
        return [self.file("tw_put", name, options, **columns)]

    def do_move(self, name, *words):
        reply = self.file("tw_move", name, read_options(words))
        return ["gone" if reply.startswith("error there is no such task") else reply]

    def do_cancel(self, name):
        task = self.look(name)
        self.insert("tw_cancel", queue="q", id=name)
        return ["gone" if task is None else "at work" if task["state"] == "leased" else "cancelled"]

    def look(self, name):
        row = self.db.execute(LOOK, {"begin": BEGIN, "id": name}).fetchone()
        return row and dict(row)

    def do_get(self, name):
        task = self.look(name)
        return show(task) if task else ["gone"]

    def do_pass(self, ms):
        self.now += int(ms)
        return self.ask("pass", ms)
