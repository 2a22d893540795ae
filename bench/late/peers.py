# SPDX-License-Identifier: MIT
"""The sides of the lateness table in Python: our client's workers. `measure` leads it as it leads peers.js, and
names the steps.

    peers.py python|asyncio|python_file PENDING PROBES PLACE

PLACE is the port of Redis, or the path of the file. TICKWHEEL_COMMAND is the command, which makes the tables of
the file.
"""
import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time

import tickwheel
import tickwheel.aio

BATCH = 1000            # tasks that one call files
EVERY_MS, AHEAD_MS, HOUR_MS = 20, 2000, 3600 * 1000
PENDING_MS = 15 * 24 * HOUR_MS
PATIENCE_S = 120        # after the last probe
LOOK_S = 0.1
AT_ONCE = 10            # jobs of a worker
PAYLOAD = "p" * 80


def now_ms():
    return time.time_ns() // 1000000


class Side:
    """A worker with threads. Its tasks carry their due time in their payload."""
    worker = None

    def __init__(self, place):
        self.place, self.filed, self.late = place, 0, []

    def called(self, job):
        now_us = time.time_ns() // 1000
        self.late.append(now_us - int(job.text.split(" ")[0]) * 1000)

    def tasks(self, dues):
        """The arguments of a put for each task. Probes have names of their own: the pending tasks stay."""
        name = "task" if self.worker is None else "probe"
        for due in dues:
            self.filed += 1
            yield (f"{name}:{self.filed}", f"{due} {PAYLOAD}"), {"at": due / 1000}

    def work(self):
        self.worker = tickwheel.Worker(self.client, jobs=AT_ONCE)
        self.worker.add(self.called, "late")
        self.worker.start()

    def close(self):
        self.worker.stop()
        self.worker.join()


class InRedis(Side):
    def open(self):
        self.client = tickwheel.connect(f"redis://127.0.0.1:{self.place}")
        self.queue = tickwheel.Queue(self.client, "late")

    def file(self, dues):
        with self.client.pipeline(transaction=False) as pipe:
            queue = self.queue.on(pipe)
            for words, options in self.tasks(dues):
                queue.put(*words, **options)
            pipe.execute()


class InFile(Side):
    def open(self):
        subprocess.run([os.environ["TICKWHEEL_COMMAND"], "put", "--store", self.place, "--quiet"], check=True,
                       stdin=subprocess.DEVNULL)
        self.client = tickwheel.connect(f"sqlite:///{self.place}")
        self.queue = tickwheel.Queue(self.client, "late")

    def file(self, dues):
        """Files tasks in one transaction of a connection of our own."""
        db = sqlite3.connect(self.place)
        queue = self.queue.on(db)
        for words, options in self.tasks(dues):
            queue.put(*words, **options)
        db.commit()
        db.close()


class Asyncio(Side):
    """A worker in an event loop, which has a thread of its own."""

    def __init__(self, place):
        super().__init__(place)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def begin(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def open(self):
        self.client = tickwheel.aio.connect(f"redis://127.0.0.1:{self.place}")
        self.queue = tickwheel.aio.Queue(self.client, "late")

    def file(self, dues):
        self.begin(self.put(dues)).result()

    async def put(self, dues):
        async with self.client.pipeline(transaction=False) as pipe:
            queue = self.queue.on(pipe)
            for words, options in self.tasks(dues):
                await queue.put(*words, **options)
            await pipe.execute()

    async def handle(self, job):
        self.called(job)

    def work(self):
        self.worker = tickwheel.aio.Worker(self.client, jobs=AT_ONCE)
        self.worker.add(self.handle, "late")
        self.running = self.begin(self.worker.run(signals=False))

    def close(self):
        self.loop.call_soon_threadsafe(self.worker.stop)
        self.running.result()


SIDES = {"python": InRedis, "asyncio": Asyncio, "python_file": InFile}


# ---- the steps -----------------------------------------------------------------------------------------------

def step(done, *following):
    """Says that the last step is done, and waits for the word that begins the next. Returns that word."""
    print(done, flush=True)
    word = sys.stdin.readline().strip()
    if word not in following:
        sys.exit("peers.py: the measuring program has gone")
    return word


def file_all(side, dues):
    for first in range(0, len(dues), BATCH):
        side.file(dues[first:first + BATCH])


def fill(side, pending):
    start = now_ms() + HOUR_MS
    file_all(side, [start + random.randrange(PENDING_MS) for _ in range(pending)])


def await_probes(side, probes, start_ms):
    end_s = (start_ms + probes * EVERY_MS) / 1000 + PATIENCE_S
    while len(side.late) < probes:
        if time.time() > end_s:
            sys.exit(f"peers.py: {len(side.late)} of {probes} probes were called within two minutes")
        time.sleep(LOOK_S)


def work(side, probes):
    side.work()
    step("idle", "probe")
    start = now_ms() + AHEAD_MS
    file_all(side, [start + i * EVERY_MS + random.randrange(EVERY_MS) for i in range(probes)])
    if now_ms() > start:
        sys.exit("peers.py: filing took longer than thought: probes were due before they were there")
    await_probes(side, probes, start)
    for us in side.late:
        print("late", us)
    step("done", "end")
    side.close()


def main():
    name, pending, probes, place = sys.argv[1:]
    side = SIDES[name](place)
    side.open()
    word = step("empty", "fill", "work")
    if word == "fill":
        fill(side, int(pending))
        word = step("filled", "work", "end")
    if word == "work":
        work(side, int(probes))


main()
