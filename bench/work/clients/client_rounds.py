# SPDX-License-Identifier: MIT
"""The section `clients` of `measure`: our clients beside rq, Celery and BullMQ, the command `tickwheel work`
beside the processes that it starts, and how late handlers begin.

Each client is a program on the clients' core, which tells when its first job is next and when its last one is
done (tally.py). One program puts all jobs, and then another works on them, a hundred at a time.
"""
import collections
import os
import selectors
import signal
import subprocess
import sys
import time

from interpreters import environment, has_node, has_python, python
from processes import spent_us
from servers import CLIENT_CORE, CORES, SERVER_CORE, Progress, fail

HERE = os.path.dirname(os.path.abspath(__file__))
LATE = os.path.join(HERE, os.pardir, os.pardir, "late", "measure")
IN_FLIGHT = 100     # as in tally.py
PATIENCE_S = 300    # for a line of a client
LEAVE_S = 10        # for its end after SIGTERM
LOOK_S = 0.02

# `needs` are packages of Python or Node. `fewer` divides the number of jobs, as all figures are for one job and
# a slow side need not take minutes. `left` asks the server whether jobs are left that no worker has taken.
Side = collections.namedtuple("Side", "program needs fewer left")
OURS_LEFT, RQ_LEFT, LIST_LEFT = ("EXISTS", "tasks"), ("LLEN", "rq:queue:tasks"), ("LLEN", "tasks")
SIDES = {
    "python": Side("ours.py", ["redis"], 1, OURS_LEFT),
    "asyncio": Side("ours.py", ["redis"], 1, OURS_LEFT),
    "node": Side("ours.js", ["redis"], 1, OURS_LEFT),
    "rq": Side("with_rq.py", ["redis", "rq"], 5, RQ_LEFT),
    "rq_fork": Side("with_rq.py", ["redis", "rq"], 25, RQ_LEFT),
    "celery": Side("with_celery.py", ["redis", "celery"], 5, LIST_LEFT),
    "celery_prefork": Side("with_celery.py", ["redis", "celery"], 5, LIST_LEFT),
    "bullmq": Side("with_bullmq.js", ["bullmq"], 1, ("LLEN", "bull:tasks:wait")),
}
OURS = ("python", "asyncio", "node")
# The sides of bench/late, and by which name they are reported.
LATE_SIDES = {"python": "python", "asyncio": "asyncio", "module": "node", "python_file": "python_file",
              "node_file": "node_file"}


class Setup:
    """The functions Server(), put() and report() of `measure`, and its settings."""

    def __init__(self, **given):
        self.__dict__.update(given)


# ---- clients -------------------------------------------------------------------------------------------------

Moment = collections.namedtuple("Moment", "ns client_us server_us")


class Client:
    """The process of a client, and the lines that it prints. A library may print others."""

    def __init__(self, setup, side, mode, server, jobs):
        self.log = os.path.join(setup.folder, f"{side}-{mode}.log")
        one = SIDES[side]
        runtime = ["node"] if one.program.endswith(".js") else [python(), "-B"]
        words = ["taskset", "-c", CLIENT_CORE, *runtime, os.path.join(HERE, one.program), side, mode,
                 server.port, server.process.pid, jobs, setup.payload]
        self.words, self.rest = f"{side}, {mode}", b""
        with open(self.log, "wb") as errors:
            self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
                                            env=environment(setup.npm))
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def moment(self, word):
        """Waits for this line. Returns its numbers."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            line, end, rest = self.rest.partition(b"\n")
            if end:
                self.rest = rest
                if line.startswith(word.encode() + b" "):
                    return Moment(*map(int, line.split()[1:]))
            elif not self.selector.select(max(0, deadline - time.monotonic())):
                self.fail(f"'{word}' did not come within {PATIENCE_S} s")
            else:
                some = os.read(self.process.stdout.fileno(), 1 << 16)
                if not some:
                    self.fail(f"it ended before '{word}'")
                self.rest += some

    def fail(self, words):
        with open(self.log, encoding="utf-8", errors="replace") as errors:
            fail(f"{self.words}: {words}\n{errors.read()}")

    def stop(self):
        """Ends the process, and those that it has left behind in its session."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=LEAVE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.selector.close()
        self.process.stdout.close()


def run(setup, side, mode, server, jobs):
    """Runs a client. Returns ns, us of the client and us of the server from its first job to its last one."""
    client = Client(setup, side, mode, server, jobs)
    try:
        first, last = client.moment("first"), client.moment("last")
    finally:
        client.stop()
    return [after - before for after, before in zip(last, first)]


def lives_round(setup, round_, side):
    """Puts jobs, and lets a worker do them all."""
    Progress.say(f"round {round_}: clients, {side}")
    jobs = setup.jobs // SIDES[side].fewer
    server = setup.Server("tickwheel" if side in OURS else side)
    put = run(setup, side, "put", server, jobs)
    worked = run(setup, side, "work", server, jobs)
    if server.ask(*SIDES[side].left) != 0:
        fail(f"{side}: jobs are left after {jobs} calls of the handler")
    server.stop()
    for load, figures in (("client_put", put), ("client_work", worked),
                          ("client_life", [sum(both) for both in zip(put, worked)])):
        ns, client_us, server_us = figures
        setup.report(round_, jobs, side, load, IN_FLIGHT, rate=1e9 * jobs / ns, server_us=server_us / jobs,
                     client_us=client_us / jobs)


def sides_there(setup):
    """The sides that are installed. A line names each of the others."""
    found = []
    for side, one in SIDES.items():
        is_node = one.program.endswith(".js")
        missing = [package for package in one.needs
                   if not (has_node(package, setup.npm) if is_node else has_python(package))]
        if missing:
            how = "BULLMQ=install" if side == "bullmq" else "tools/setup peers"
            print(f"bench/work/measure: {side} is left out: {' and '.join(missing)} of "
                  f"{'Node' if is_node else 'Python'} is not installed ({how})", file=sys.stderr)
        else:
            found.append(side)
    return found


# ---- tickwheel work ------------------------------------------------------------------------------------------

def work_us(setup):
    """The time in which `tickwheel work` has done all commands, its own start included. Returns us, and us of
    the processor for the server, and for the worker with its commands."""
    server = setup.Server("tickwheel")
    setup.put(server, setup.commands, time.time_ns() // 1000000)
    server.await_ready(setup.commands)
    before, begun = server.spent_us(), time.monotonic_ns()
    worker = subprocess.Popen(["taskset", "-c", str(CLIENT_CORE), setup.command, "work", "--redis",
                               f"redis://127.0.0.1:{server.port}", "--jobs", str(setup.command_jobs), "tasks",
                               "--exec", "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while server.ask("EXISTS", "tasks") and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        us = (time.monotonic_ns() - begun) / 1000
        spent = server.spent_us() - before, spent_us(worker.pid)
        worker.send_signal(signal.SIGTERM)
        said = worker.communicate(timeout=LEAVE_S)[1]
    finally:
        if worker.poll() is None:
            worker.kill()
            worker.wait()
    if f" {setup.commands} done, 0 failed" not in said:
        fail(f"tickwheel work has not done {setup.commands} commands:\n{said}")
    server.stop()
    return us, *spent


def spawn_us(setup):
    """The time in which the commands alone are spawned and have ended. Returns us, and us of the processor."""
    done = subprocess.run(["taskset", "-c", str(CLIENT_CORE), setup.spawn, str(setup.commands),
                           str(setup.command_jobs), "true"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, check=True)
    return tuple(map(int, done.stdout.split()))


def commands_round(setup, round_):
    """The commands have their core to themselves: what looks at the server is on the server's core."""
    Progress.say(f"round {round_}: tickwheel work --exec true")
    os.sched_setaffinity(0, {SERVER_CORE})
    alone = spawn_us(setup) if round_ % 2 else None
    us, server_us, worker_us = work_us(setup)
    alone = alone or spawn_us(setup)
    os.sched_setaffinity(0, {CLIENT_CORE})
    count, jobs = setup.commands, setup.command_jobs
    setup.report(round_, count, "tickwheel", "exec", jobs, wall_us=us / count, ratio=us / alone[0],
                 server_us=server_us / count, client_us=worker_us / count)
    setup.report(round_, count, "spawn", "exec", jobs, wall_us=alone[0] / count, client_us=alone[1] / count)


# ---- lateness ------------------------------------------------------------------------------------------------

def lateness(setup):
    """Lets bench/late measure the sides of our clients, in its own way."""
    Progress.say(f"lateness, {setup.pending:,} pending")
    given = {"MODULE": setup.module, "COMMAND": setup.command, "SIDES": " ".join(LATE_SIDES),
             "ROUNDS": str(min(setup.rounds, setup.late_rounds)),
             "PENDING": str(setup.pending), "IDLE_S": "0", "PEERS": setup.npm or "", "AFTERFUNC": "",
             "SERVER_CORE": str(SERVER_CORE), "CLIENT_CORE": str(CLIENT_CORE)}
    words = ["taskset", "-c", ",".join(map(str, CORES)), sys.executable, LATE, "late_bench", setup.folder,
             *(["--quick"] if setup.quick else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **given}) as process:
        try:
            said = process.communicate()[0]
        except BaseException:
            process.terminate()     # it stops its servers
            raise
    if process.returncode != 0:
        fail("the lateness was not measured")
    for row in said.splitlines()[1:]:
        round_, pending, side, metric, value = row.split("\t")
        if metric != "bytes":
            setup.report(round_, int(pending), LATE_SIDES[side], "late", int(pending), **{metric: float(value)})


# ---- all of it -----------------------------------------------------------------------------------------------

def measure(setup):
    sides = sides_there(setup)
    for round_ in range(1, setup.rounds + 1):
        turn = round_ % len(sides) if sides else 0
        for side in sides[turn:] + sides[:turn]:
            lives_round(setup, round_, side)
        commands_round(setup, round_)
    lateness(setup)
