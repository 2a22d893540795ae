# SPDX-License-Identifier: MIT
"""tickwheel work, at a server and with a file: both by the same table of situations. What all workers have in
common, for example a server that goes away, tests/clients/test_workers.py tests with this command too. The
command's options, and the situations that only a file has, are in tests/command/test_work.

The last test runs the commands of docs/work.md.
"""
import contextlib
import os
import pathlib
import re
import resource
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys

import pytest

from harness import HOST, PATIENCE, ROOT, Fleet, Guard, now_ms, program, task, wait_replica_in_sync, wait_until
from situations import calls_of
from test_tour import pattern_of

sys.path.append(os.path.join(ROOT, "tests", "command"))

from clock import Clock  # noqa: E402  (the folder has to be on the path first)

COMMAND = os.path.abspath(os.environ.get("TICKWHEEL_COMMAND") or os.path.join(ROOT, "build", "tickwheel"))
TIMED = os.path.join(os.path.dirname(COMMAND), "tests", "tickwheel_timed")  # its time is a Clock
PAGE = pathlib.Path(ROOT, "docs", "work.md")
LEASE_MS = 120000
FAR_MS = 3600000


class Work:
    """A `tickwheel work` that runs, with its outputs in files."""

    def __init__(self, folder, *words, command=COMMAND, **options):
        self.out, self.err = folder / f"{len(list(folder.iterdir()))}.out", None
        self.err = self.out.with_suffix(".err")
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            # pylint: disable-next=consider-using-with  (end() waits for it)
            self.process = subprocess.Popen([command, "work", *map(str, words)], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=err, cwd=folder, **options)
        Guard.tell("+", self.process.pid)

    def printed(self):
        return self.out.read_bytes().decode(errors="replace")

    def said(self):
        return self.err.read_bytes().decode(errors="replace")

    def waits_for(self, pattern, said=False):
        look = self.said if said else self.printed
        wait_until(lambda: re.search(pattern, look(), re.MULTILINE) or self.process.poll() is not None,
                   message=lambda: f"no {pattern}:\n{self.printed()}\n{self.said()}")
        assert re.search(pattern, look(), re.MULTILINE), self.printed() + self.said()

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def ends(self, status=0):
        """Waits for the end. Returns the counts: done, failed, died, given back, not yours."""
        assert self.process.wait(PATIENCE) == status, self.said()
        Guard.tell("-", self.process.pid)
        return [int(n) for n in re.findall(r"\d+", self.said().splitlines()[-1])]

    def stop(self):
        self.signal()
        return self.ends()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        Guard.tell("-", self.process.pid)


class AtServer:
    """Tasks of a server."""
    leases = True

    def __init__(self, server, folder):
        self.r, self.folder = server.client(), folder
        self.words = ["--redis", f"redis://{HOST}:{server.port}"]

    def put_series(self, name, every_ms):
        self.r.execute_command("TW.PUT", "q", name, "AT", 0, "EVERY", every_ms, "BACKOFF", 1, 1, 1,
                               "PAYLOAD", "")

    def put(self, name, text="", tries=3, wait_ms=1, queue="q"):
        self.r.execute_command("TW.PUT", queue, name, "IN", 0, "TRIES", tries, "BACKOFF", wait_ms, 1, wait_ms,
                               "PAYLOAD", text)

    def find(self, name, queue="q"):
        """Returns the state of a task, its attempt and its error; None if it is not there."""
        found = task(self.r, queue, name)
        return found and (found["state"], found["attempt"], found["error"])

    def cancel(self, name):
        assert self.r.execute_command("TW.CANCEL", "q", name) == [2]

    def lapse(self, name, token):
        """Ends the lease of a worker that was killed."""
        assert self.r.execute_command("TW.TOUCH", "q", name, token, "LEASE", 1)

    RUNNING, FRESH = "leased", ("ready", 0, "")


class InFile:
    """Tasks of a file."""
    leases = False

    def __init__(self, folder):
        self.folder, self.store = folder, folder / "s.db"
        self.words = ["--store", self.store]

    def put_series(self, name, every_ms):
        line = f"every {every_ms}ms @1970-01-01T00:00:00Z {name}\n"
        subprocess.run([COMMAND, "put", "--store", self.store, "--queue", "q", "--backoff", "1ms"], input=line,
                       text=True, check=True, timeout=PATIENCE)

    def put(self, name, text="", tries=3, wait_ms=1, queue="q"):
        subprocess.run([COMMAND, "put", "--store", self.store, "--queue", queue, "--tries", str(tries),
                        "--backoff", f"{wait_ms}ms", "+0s", name, *([text] if text else [])],
                       check=True, timeout=PATIENCE)

    def find(self, name, queue="q"):
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            found = db.execute("SELECT state, attempt, error FROM tw_list WHERE queue = ? AND id = ?",
                               (queue, name)).fetchone()
        return found and (found[0], found[1], found[2] or "")

    def cancel(self, name):
        subprocess.run([COMMAND, "tasks", "--store", self.store, "--queue", "q", "cancel", name], check=True,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE)

    def lapse(self, name, token):
        """Nothing is to do: the attempts of a process end with it."""

    RUNNING, FRESH = "leased", ("ready", 0, "")


@pytest.fixture(scope="module")
def shared():
    fleet = Fleet()
    yield fleet.server()
    fleet.close()


@pytest.fixture(params=["server", "file"])
def place(request, tmp_path, shared):
    if request.param == "file":
        yield InFile(tmp_path)
        return
    at = AtServer(shared, tmp_path)
    yield at
    at.r.flushall()


@pytest.fixture
def work(tmp_path):
    """Starts workers. A worker that still runs at the end of the test is killed."""
    made, folder = [], tmp_path / "work"
    folder.mkdir()

    def start(place, *words, queues=("q",), lease=LEASE_MS, **options):
        made.append(Work(folder, *place.words, "--lease", f"{lease}ms", *queues, "--exec", *words, **options))
        return made[-1]
    yield start
    for one in made:
        one.close()


def gone(place, name, queue="q"):
    wait_until(lambda: place.find(name, queue) is None, message=lambda: str(place.find(name, queue)))


def is_dead(place, name):
    """Waits until the task is dead, and returns its error."""
    wait_until(lambda: (place.find(name) or ("", 0, ""))[0] == "dead", message=lambda: str(place.find(name)))
    return place.find(name)[2]


def pid_in(path):
    wait_until(lambda: path.exists() and path.read_text(encoding="ascii").endswith("\n"), message=f"no {path}")
    return int(path.read_text(encoding="ascii"))


def runs(pid):
    """Whether a process is there that has not ended; its new parent may not have waited for it yet."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


# One task

def test_the_command_has_the_task(place, work):
    """In its environment and on its standard input."""
    place.put("order:42", "notify ann\tand bob")
    names = "ATTEMPT|DUE|ID|MISSED_PERIODS|PAYLOAD|QUEUE|TOKEN"
    ours = {"TICKWHEEL_ID": "of another", "TICKWHEEL_": "ours", "TICKWHEEL_IDS": "ours too"}
    one = work(place, f"env | grep -E '_({names}|IDS)?=' | grep TICKWHEEL_ | sort; cat; echo '*'",
               env={**os.environ, **ours})
    one.waits_for(r"^\*$")
    due = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(rf"TICKWHEEL_=ours\nTICKWHEEL_ATTEMPT=1\nTICKWHEEL_DUE={due}\n"
                        r"TICKWHEEL_ID=order:42\nTICKWHEEL_IDS=ours too\nTICKWHEEL_MISSED_PERIODS=0\n"
                        r"TICKWHEEL_PAYLOAD=notify ann\tand bob\nTICKWHEEL_QUEUE=q\n"
                        r"TICKWHEEL_TOKEN=[0-9a-f]{16}\n"
                        r"order:42 notify ann\tand bob\n\*\n", one.printed()), one.printed()
    gone(place, "order:42")
    assert one.stop() == [1, 0, 0, 0, 0]


def test_an_attempt_is_late_from_its_next_on(place, work):
    """A past bug: a retry was late from the due time on, here 1970. A server does not tell."""
    place.put_series("beat", now_ms() * 2 // 5)
    one = work(place, """case ${TICKWHEEL_LATE_US:-none} in
        none) echo not known;; ????????????????*) echo since 1970;; *) echo since the retry;;
        esac; [ $TICKWHEEL_ATTEMPT = 2 ]""")
    one.waits_for(r"\n(not|since) ")
    assert one.stop() == [1, 1, 0, 0, 0]
    assert one.printed() == ("not known\n" * 2 if place.leases else "since 1970\nsince the retry\n")


def test_the_command_knows_for_how_many_periods_its_call_stands(place, work):
    """The same number in each attempt."""
    place.put_series("beat", now_ms() * 2 // 5)
    one = work(place, "echo $TICKWHEEL_ATTEMPT $TICKWHEEL_MISSED_PERIODS; [ $TICKWHEEL_ATTEMPT = 2 ]")
    one.waits_for("^2 2$")
    assert one.printed() == "1 2\n2 2\n"
    assert one.stop() == [1, 1, 0, 0, 0]


def test_it_fails_twice_and_succeeds(place, work):
    place.put("a", wait_ms=20)
    one = work(place, 'echo $TICKWHEEL_ATTEMPT; [ $TICKWHEEL_ATTEMPT -eq 3 ] || { echo no luck >&2; exit 9; }')
    gone(place, "a")
    assert one.stop() == [1, 2, 0, 0, 0]
    assert one.printed() == "1\n2\n3\n"
    assert one.said().splitlines().count("no luck") == 2
    told = r"^tickwheel work: (q a|queue 'q', id 'a'): attempt 1 has failed: exit status 9: no luck$"
    assert len(re.findall(told, one.said(), re.MULTILINE)) == 1


@pytest.mark.parametrize("command,error", [
    ("exit 7", "exit status 7"),
    ("printf 'one\\ntwo \\n\\n' >&2; exit 1", "exit status 1: one\ntwo"),
    ("kill -KILL $$", "killed by signal 9 (Killed)"),
    ("printf 'a\\000b\\377c' >&2; exit 1", "exit status 1: a?b?c"),
    ("/nonexistent/program 2>/dev/null", "exit status 127"),
])
def test_errors(place, work, command, error):
    place.put("a", tries=1)
    one = work(place, command)
    assert is_dead(place, "a") == error
    assert one.stop() == [0, 1, 1, 0, 0]


def test_a_command_says_that_it_is_too_early(place, work):
    """Nothing fails, so the one try is left, and the backoff does not matter."""
    place.put("a", tries=1, wait_ms=FAR_MS)
    one = work(place, "echo $TICKWHEEL_ATTEMPT; [ -e late ] || exit 75", "--back", "20ms")
    one.waits_for(r"(1\n){3}")
    (one.out.parent / "late").touch()
    gone(place, "a")
    assert one.stop() == [1, 0, 0, one.printed().count("1\n") - 1, 0]
    assert "failed: " not in one.said()

    place.put("b", tries=1)
    one = work(place, "exit 75", "--back", "1h")
    wait_until(lambda: place.find("b") == ("waiting", 0, ""), message=lambda: str(place.find("b")))
    assert one.stop() == [0, 0, 0, 1, 0]


def test_a_command_that_is_given_up_may_say_when_its_task_comes_again(place, work):
    """Else it is ready at once."""
    place.put("a", tries=1)
    one = work(place, "trap 'exit 75' TERM; mkfifo go; exec 3<> go; echo begun; while :; do read l <&3; done",
               "--back", "1h")
    one.waits_for("^begun$")
    one.signal()
    one.waits_for("a second signal", said=True)
    one.signal()
    assert one.ends() == [0, 0, 0, 1, 0]
    assert place.find("a") == ("waiting", 0, "")


def test_a_command_with_too_long_an_environment(place, work):
    """It cannot be started now, and not later. The attempt has failed."""
    one = work(place, "true", env={**os.environ, "LONG": "x" * 100000})
    one.waits_for("ready", said=True)
    # The size of arguments and environment is limited to a quarter of it, at least 128 KiB.
    resource.prlimit(one.process.pid, resource.RLIMIT_STACK, (65536, 65536))
    place.put("a", "y" * 90000, tries=1)
    assert is_dead(place, "a") == "cannot be started: Argument list too long"
    assert one.stop() == [0, 1, 1, 0, 0]


def test_a_long_error_keeps_its_end(place, work):
    """It is cut between two characters. All of the standard error goes on to that of the worker."""
    place.put("a", tries=1)
    one = work(place,
               "yes \u00e4\u00e4\u00e4 | head -c 700000 | tr -d '\\n' >&2; printf '\u20acend' >&2; exit 1")
    error = is_dead(place, "a")
    assert 4092 < len(error.encode()) <= 4096
    assert re.fullmatch("exit status 1: \u00e4+\u20acend", error)
    assert one.stop() == [0, 1, 1, 0, 0]
    passed_on, told = re.split("tickwheel work: .*: dead after 1 attempt: exit status 1: ", one.said())
    assert passed_on.count("\u00e4") == 300000 and passed_on.endswith("\u20acend")
    assert len(told.splitlines()[0]) < 600


def test_several_queues(place, work):
    for queue in ("q", "p"):
        place.put("a", queue=queue)
    one = work(place, "echo $TICKWHEEL_QUEUE $TICKWHEEL_ID", queues=("q", "p"))
    for queue in ("q", "p"):
        gone(place, "a", queue)
    assert sorted(one.printed().splitlines()) == ["p a", "q a"]
    assert "ready; taking from q, p at " in one.said()
    assert one.stop() == [2, 0, 0, 0, 0]


# Several tasks

# Its end of the pipe is open, so that nobody waits for it, and read() waits for a line.
# It tells its token first, so that a test may end the lease of a worker that was killed.
WAITS = ("echo $TICKWHEEL_TOKEN > $TICKWHEEL_ID.token; mkfifo $TICKWHEEL_ID.go; exec 3<> $TICKWHEEL_ID.go; "
         "echo $$ > $TICKWHEEL_ID.pid; read line <&3")


def kill(place, one, name):
    """Kills a worker, whose command of this task WAITS, and lets the attempt lapse. Returns the pid of the
    command."""
    pid = pid_in(one.out.parent / f"{name}.pid")
    one.signal(signal.SIGKILL)
    one.process.wait(PATIENCE)
    place.lapse(name, (one.out.parent / f"{name}.token").read_text(encoding="ascii").strip())
    return pid


def go(folder, name):
    """Lets the command of a task end that WAITS."""
    (folder / f"{name}.go").write_text("go\n", encoding="ascii")


def test_so_many_at_once_and_no_more(place, work):
    for name in "abc":
        place.put(name)
    one = work(place, WAITS, "--jobs", 2)
    folder = one.out.parent
    for name in "ab":
        pid_in(folder / f"{name}.pid")
    assert place.find("c")[0] != place.RUNNING or not (folder / "c.pid").exists()
    go(folder, "a")
    pid_in(folder / "c.pid")
    for name in "bc":
        go(folder, name)
    for name in "abc":
        gone(place, name)
    assert one.stop() == [3, 0, 0, 0, 0]


@pytest.mark.parametrize("most,ends", [(112, 2), (111, 1), (40, 1)])
def test_few_descriptors_are_no_limit_of_the_commands(shared, tmp_path, work, most, ends):
    """The worker holds both ends of the pipes, 64 other descriptors at least being left, as the end that a
    command writes to would else wake it before SIGCHLD does. With fewer descriptors it holds one, and has all
    commands run at once."""
    place = AtServer(shared, tmp_path)
    os.mkfifo(tmp_path / "go")
    with open(tmp_path / "go", "r+b", buffering=0) as gate:
        one = work(place, f"echo begun; read line < {tmp_path}/go", "--jobs", 24,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
        for i in range(24):
            place.put(f"k{i}")
        wait_until(lambda: one.printed() == "begun\n" * 24, message=one.said)
        folder = f"/proc/{one.process.pid}/fd"
        found = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
        assert sum(name.startswith("pipe:") for name in found) == 24 * ends
        gate.write(b"go\n" * 24)
        wait_until(lambda: not place.r.exists("q"))
    assert one.stop() == [24, 0, 0, 0, 0]


def test_a_command_that_takes_five_leases(clock, server, tmp_path, work):
    """The clock of the server goes on only when the worker has touched its lease since. So no lease runs out,
    and none begins anew after a step of the clock, which would hide that."""
    place = AtServer(server, tmp_path)
    place.put("a")
    one = work(place, WAITS, lease=100)
    pid_in(one.out.parent / "a.pid")
    for _ in range(10):
        before = calls_of(place.r, "TW.TOUCH")
        wait_until(lambda count=before: calls_of(place.r, "TW.TOUCH") >= count + 2)
        clock.push(60)
    assert [server.tw()[name] for name in ("taken", "renewed", "lapsed")] == [1, 0, 0]
    go(one.out.parent, "a")
    gone(place, "a")
    assert one.stop() == [1, 0, 0, 0, 0]


def test_a_lost_task(place, work):
    """The command runs on, and its failure changes nothing."""
    place.put("a")
    one = work(place, WAITS + "; exit 1", lease=3000)
    pid_in(one.out.parent / "a.pid")
    place.cancel("a")
    one.waits_for(r"^tickwheel work: q a: attempt 1 is not yours any more \(its command runs on", said=True)
    go(one.out.parent, "a")
    assert one.stop() == [0, 0, 0, 0, 1]
    assert place.find("a") is None


def test_kill_9(place, work):
    """The next worker has the next attempt."""
    place.put("a")
    first = work(place, WAITS)
    pid = kill(place, first, "a")
    second = work(place, "echo attempt $TICKWHEEL_ATTEMPT")
    second.waits_for("^attempt 2$")
    gone(place, "a")
    assert runs(pid), "the command of a worker that was killed runs on"
    go(first.out.parent, "a")
    assert second.stop() == [1, 0, 0, 0, 0]


def test_the_first_failure_is_told_whichever_attempt_it_is(place, work):
    """A bug: the first attempt ended with its worker, and no failure of a later one was told."""
    place.put("a", tries=4)
    first = work(place, WAITS)
    kill(place, first, "a")
    second = work(place, "[ $TICKWHEEL_ATTEMPT -ge 4 ] || exit 9")
    gone(place, "a")
    go(first.out.parent, "a")
    assert second.stop() == [1, 2, 0, 0, 0]
    told = re.findall(r"^tickwheel work: (?:q a|queue 'q', id 'a'): (attempt \d+) .*: exit status 9$",
                      second.said(), re.MULTILINE)
    assert told == ["attempt 2"]


# The processes of a command

def test_a_process_that_a_command_leaves_behind_ends_too(place, work):
    place.put("a")
    one = work(place, "sleep infinity & echo $! > behind.pid")
    pid = pid_in(one.out.parent / "behind.pid")
    wait_until(lambda: not runs(pid))
    assert one.stop() == [1, 0, 0, 0, 0]


def test_a_process_that_is_left_behind_by_an_option(place, work):
    """The task is done when the command ends. The process runs on, without a standard error, and nobody waits
    for it."""
    place.put("a")
    one = work(place, "trap '' PIPE; mkfifo .go; (read line < .go; echo late >&2 || echo lost > told) & "
               "echo $! > behind.pid", "--leave")
    folder = one.out.parent
    pid = pid_in(folder / "behind.pid")
    gone(place, "a")
    assert runs(pid)
    go(folder, "")
    wait_until((folder / "told").exists)
    wait_until(lambda: not runs(pid))
    assert one.stop() == [1, 0, 0, 0, 0]
    assert "late" not in one.said()


def test_the_timeout_ends_each_process_of_the_command(place, work):
    """Also a process that ignores SIGTERM. The command may be ended before it has written: then it is tried
    again."""
    place.put("a", tries=1000)
    one = work(place, "(trap '' TERM; exec sleep infinity) & echo $! >> all.pid; wait", "--timeout", "20ms")
    path = one.out.parent / "all.pid"
    wait_until(lambda: path.exists() and path.read_text(encoding="ascii").endswith("\n"))
    done, failed, *_ = one.stop()
    assert done == 0 and failed >= 1
    pids = list(map(int, path.read_text(encoding="ascii").split()))
    wait_until(lambda: not any(map(runs, pids)))


# The end

def test_a_stop_waits_for_commands(place, work):
    place.put("a")
    one = work(place, WAITS)
    pid_in(one.out.parent / "a.pid")
    one.signal(signal.SIGINT)
    one.waits_for("waiting for 1 running command; a second signal ends it", said=True)
    place.put("b")
    go(one.out.parent, "a")
    assert one.ends() == [1, 0, 0, 0, 0]
    assert place.find("a") is None and not (one.out.parent / "b.pid").exists()


def test_a_second_signal_gives_tasks_back(place, work):
    """SIGTERM reaches all processes of the command."""
    place.put("a", wait_ms=FAR_MS)
    one = work(place, "sleep infinity & echo $! > child.pid; echo $$ > a.pid; wait")
    shell, child = (pid_in(one.out.parent / f"{name}.pid") for name in ("a", "child"))
    one.signal()
    one.waits_for("a second signal", said=True)
    one.signal()
    assert one.ends() == [0, 0, 0, 1, 0]
    wait_until(lambda: not runs(shell) and not runs(child))
    assert place.find("a") == place.FRESH


def test_the_end_of_the_grace(place, work, tmp_path):
    """A command may do its task in the last second. Another one ignores SIGTERM, and gets SIGKILL. The clock
    of the worker stands still until the first one has ended, and its end counts after that second."""
    for name in "ab":
        place.put(name, wait_ms=FAR_MS)
    clock = Clock(tmp_path)
    one = work(place, 'trap "[ $TICKWHEEL_ID = a ] && exit 0" TERM; mkfifo $TICKWHEEL_ID; '
               'exec 3<> $TICKWHEEL_ID; echo $$ > $TICKWHEEL_ID.pid; while :; do read line <&3; done',
               "--grace", "50ms", command=TIMED, env=clock.environment())
    clock.processes.append(one.process)
    pids = [one.out.parent / f"{name}.pid" for name in "ab"]
    clock.until(lambda: all(map(pathlib.Path.exists, pids)), 1)
    pids = [pid_in(path) for path in pids]
    one.signal()
    clock.until(lambda: not runs(pids[0]), 0.5)
    assert runs(pids[1]) and place.find("a")[0] == place.RUNNING
    clock.until(lambda: not runs(pids[1]), 2)
    assert one.ends() == [1, 0, 0, 1, 0]
    assert place.find("a") is None and place.find("b") == place.FRESH


def test_no_descriptor_is_left(place, work):
    """The command cannot be started. Its task is given back, and comes again when there are descriptors."""
    one = work(place, "echo attempt $TICKWHEEL_ATTEMPT", lease=60000)
    one.waits_for("ready", said=True)
    before = resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE)
    used = 1 + max(int(fd) for fd in os.listdir(f"/proc/{one.process.pid}/fd"))
    place.put("warm")  # A file opens descriptors of its own in the first task.
    gone(place, "warm")
    resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE, (used, before[1]))
    place.put("a", tries=1)
    one.waits_for("the command of a task cannot be started: Too many open files", said=True)
    resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE, before)
    gone(place, "a")
    assert one.printed() == "attempt 1\nattempt 1\n"
    done, failed, died, back, not_yours = one.stop()
    assert (done, failed, died, not_yours) == (2, 0, 0, 0) and back >= 1


@pytest.mark.long(only=True)
def test_ten_thousand_tasks(place, work):
    """Each is done once."""
    for i in range(10000):
        if isinstance(place, AtServer):
            place.put(f"k{i}")
    if isinstance(place, InFile):
        lines = "".join(f"+0s k{i}\n" for i in range(10000))
        subprocess.run([COMMAND, "put", "--store", place.store, "--queue", "q"], input=lines, text=True,
                       check=True, timeout=PATIENCE)
    one = work(place, "echo $TICKWHEEL_ID", "--jobs", 8, lease=30000)
    wait_until(lambda: one.printed().count("\n") >= 10000, patience=PATIENCE * 5)
    assert one.stop() == [10000, 0, 0, 0, 0]
    assert sorted(one.printed().split()) == sorted(f"k{i}" for i in range(10000))


# Servers

def test_values_are_lines_of_the_standard_input(shared, tmp_path, work):
    place = AtServer(shared, tmp_path)
    place.r.execute_command("TW.PUT", "q", "a", "IN", 0, "PAYLOAD", "one", "", b"\x00\xff", "four")
    one = work(place, 'cat; echo "<$TICKWHEEL_PAYLOAD>"')
    wait_until(lambda: not place.r.exists("q"))
    one.stop()
    assert one.out.read_bytes() == b"a one\n\n\x00\xff\nfour\n<one>\n"


def test_values_of_each_size(shared, tmp_path, work):
    """A part of 4 KiB is written at once. These values end within it, at its end, behind it and far behind."""
    place = AtServer(shared, tmp_path)
    inputs = {f"k{i}": values for i, values in enumerate(
        [[size] for size in (4091, 4092, 4093, 4094, 4095, 4096, 4097)] +
        [[4000, 90, 4096, 0, 4097, 7], [1, 100001, 1, 4092], [0] * 5000])}
    for name, sizes in inputs.items():
        values = [name[-1] * size for size in sizes]
        place.r.execute_command("TW.PUT", "q", name, "IN", 0, "PAYLOAD", *values)
    one = work(place, "cat > $TICKWHEEL_ID.input")
    wait_until(lambda: not place.r.exists("q"))
    assert one.stop() == [len(inputs), 0, 0, 0, 0]
    for name, sizes in inputs.items():
        lines = "".join(f"{name[-1] * size}\n" for size in sizes)
        given = (one.out.parent / f"{name}.input").read_text(encoding="ascii")
        assert given == name + " " * (sizes[0] > 0) + lines, (name, sizes)


def test_a_short_input_is_one_write(shared, tmp_path, work):
    """The kernel counts the writes to files, and not those to connections."""
    place = AtServer(shared, tmp_path)
    one = work(place, ":")
    one.waits_for("ready", said=True)

    def writes():
        text = pathlib.Path(f"/proc/{one.process.pid}/io").read_text(encoding="ascii")
        return int(re.search(r"^syscw: (\d+)$", text, re.MULTILINE)[1])
    before = writes()
    place.r.execute_command("TW.PUT", "q", "a", "IN", 0, "PAYLOAD", *["value"] * 50)
    gone(place, "a")
    assert writes() == before + 1
    assert one.stop() == [1, 0, 0, 0, 0]


def test_a_unix_socket_a_user_and_a_database(fleet, tmp_path, work):
    server = fleet.server(unixsocket=str(tmp_path / "sock"))
    server.once("ACL", "SETUSER", "ann", "on", ">pass word", "~q", "+@all")
    place = AtServer(server, tmp_path)
    place.r = server.client(db=3)
    place.put("a")
    place.words = ["--redis", f"unix://{tmp_path}/sock?db=3", "--user", "ann"]
    passwords = {"TICKWHEEL_WORK_PASSWORD": "pass word", "TICKWHEEL_SENTINEL_PASSWORD": "no pass word"}
    one = work(place, "env; echo '*'", env={**os.environ, **passwords})
    gone(place, "a")
    one.waits_for(r"^\*$")
    one.stop()
    assert "pass word" not in one.said() + one.printed(), "the command does not get the worker's passwords"


@pytest.mark.parametrize("password,words", [
    ("wrong", "the password of user ann is wrong, or there is no such user"),
    ("right", "user ann has no permission for TW.TAKE"),
])
def test_errors_that_stay(server, tmp_path, work, password, words):
    server.once("ACL", "SETUSER", "ann", "on", ">right", "~*", "+@all", "-tw.take")
    place = AtServer(server, tmp_path)
    place.words = ["--redis", f"redis://ann:{password}@{HOST}:{server.port}"]
    one = work(place, "true")
    one.ends(1)
    assert words in one.said()


def test_a_server_with_too_many_clients(server, tmp_path, work):
    """The worker is not ready before it is let in, and names the cause once."""
    place = AtServer(server, tmp_path)
    place.put("a")
    place.r.config_set("maxclients", 1)
    one = work(place, "true")
    one.waits_for("max number of clients reached; trying again$", said=True)
    rejected = int(place.r.info("stats")["rejected_connections"])
    wait_until(lambda: int(place.r.info("stats")["rejected_connections"]) >= rejected + 4)
    assert len(one.said().splitlines()) == 1, one.said()
    place.r.config_set("maxclients", 100)
    gone(place, "a")
    one.stop()


def test_connections_that_are_closed_while_the_worker_is_idle(server, tmp_path, work):
    """One of them had no question yet, so a missing answer is no sign of TLS."""
    place = AtServer(server, tmp_path)
    one = work(place, "true")
    one.waits_for("ready", said=True)
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    place.r.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    one.waits_for("taking tasks again", said=True)
    assert "TLS" not in one.said()
    one.stop()


def test_protected_mode(server, tmp_path, work):
    """A server that is open to this machine alone refuses each connection from elsewhere. That stays."""
    with socket.create_server((HOST, 0)) as door:
        door.settimeout(PATIENCE)
        place = AtServer(server, tmp_path)
        place.words = ["--redis", f"redis://{HOST}:{door.getsockname()[1]}"]
        one = work(place, "true")
        for _ in range(2):
            with door.accept()[0] as client:
                client.sendall(b"-DENIED Redis is running in protected mode because ...\r\n")
                client.settimeout(PATIENCE)
                with contextlib.suppress(ConnectionError):
                    client.recv(1000)
        one.ends(1)
        assert "DENIED Redis is running in protected mode" in one.said()
        assert "ready" not in one.said()


def refused(replica):
    """How many commands a replica has refused."""
    return int(replica.info("errorstats").get("errorstat_READONLY", "count=0").partition("=")[2])


def test_a_replica_becomes_the_primary(fleet, server, tmp_path, work):
    """A replica refuses to give out tasks. The worker says so once, and asks less and less often."""
    replica = fleet.server(replicaof=server)
    wait_replica_in_sync(server, replica)
    place = AtServer(replica, tmp_path)
    one = work(place, "true")
    one.waits_for("READONLY .*; trying again$", said=True)
    wait_until(lambda: refused(replica) >= 4)
    assert len(one.said().splitlines()) == 2, one.said()
    replica.once("REPLICAOF", "NO", "ONE")
    place.put("a")
    gone(place, "a")
    one.waits_for("^tickwheel work: taking tasks again from ", said=True)
    assert one.stop() == [1, 0, 0, 0, 0]


def test_a_sentinel_that_says_nothing(fleet, server, tmp_path, work):
    """The next one is asked. tests/clients/test_workers_sentinel.py has failovers."""
    sentinel = fleet.sentinel(server)
    with socket.create_server((HOST, 0)) as silent:
        place = AtServer(server, tmp_path)
        place.words = ["--redis",
                       f"redis+sentinel://{HOST}:{silent.getsockname()[1]},{HOST}:{sentinel.port}/{sentinel.name}"]
        place.put("a")
        one = work(place, "true")
        gone(place, "a")
        assert f"taking from q at redis+sentinel://{HOST}:" in one.said()
        assert one.stop() == [1, 0, 0, 0, 0]


def test_a_right_is_lost_while_a_command_runs(server, tmp_path, work):
    """The command ends as usual, and its task comes again after the lease, for another worker."""
    server.once("ACL", "SETUSER", "ann", "on", ">right", "~*", "+@all")
    place = AtServer(server, tmp_path)
    place.words = ["--redis", f"redis://ann:right@{HOST}:{server.port}"]
    place.put("a")
    one = work(place, WAITS, lease=60000)
    pid_in(one.out.parent / "a.pid")
    server.once("ACL", "SETUSER", "ann", "-tw.ack")
    go(one.out.parent, "a")
    assert one.ends(1) == [0, 0, 0, 0, 1]
    assert "user ann has no permission for TW.ACK" in one.said()
    assert place.find("a")[0] == "leased"


@pytest.mark.long(only=True)
def test_a_cluster(fleet, tmp_path, work):
    """The worker goes to the node that has the slot, and follows it at a failover. It refuses two slots."""
    cluster = fleet.cluster(2, 1)
    owner = cluster.owner("{a}q")
    asked = next(node for node in cluster.primaries() if node is not owner)
    place = AtServer(asked, tmp_path)
    place.r = owner.client()
    place.put("a", queue="{a}q")
    one = work(place, "true", queues=("{a}q", "{a}p"))
    gone(place, "a", "{a}q")
    heir = cluster.replica_of(owner)
    wait_replica_in_sync(owner, heir)
    cluster.hand_over(owner, heir)
    place.r = heir.client()
    cluster.wait_ok()
    place.put("b", queue="{a}q")
    gone(place, "b", "{a}q")
    assert one.stop() == [2, 0, 0, 0, 0]
    two = work(place, "true", queues=("{a}q", "{b}q"))
    two.ends(1)
    assert "the queues lie in several slots of a cluster" in two.said()
    assert "ready" not in two.said()


def test_a_slot_on_its_way(fleet, tmp_path, work):
    """ASK: the worker of one queue goes ahead to the new node, with its results. A worker of two queues goes
    when both are there, since at the new node TW.ACK of a task that is still here would find none."""
    cluster = fleet.cluster(2, 0)
    here = cluster.owner("{a}q")
    there = next(node for node in cluster.nodes if node is not here)
    place, moved = AtServer(here, tmp_path), AtServer(there, tmp_path)
    slot = here.once("CLUSTER", "KEYSLOT", "{a}q")
    one, two = work(place, WAITS, queues=("{a}q", )), work(place, WAITS, queues=("{a}r", "{a}s"))
    folder, ahead = one.out.parent, there.client(single_connection_client=True)

    def begin(name, queue):
        (moved if name == "last" else place).put(name, queue=queue)
        pid_in(folder / f"{name}.pid")

    def asked(*words):
        assert ahead.execute_command("ASKING")
        return ahead.execute_command(*words)

    def carry(*queues):
        for queue in queues:
            here.once("MIGRATE", HOST, there.port, queue, 0, PATIENCE * 1000)

    for name, queue in (("a", "{a}q"), ("b", "{a}r"), ("c", "{a}s")):
        begin(name, queue)
    there.once("CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.id(here))
    here.once("CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.id(there))
    carry("{a}q", "{a}r")
    for name in ("a", "b", "c"):
        go(folder, name)
    wait_until(lambda: here.once("CLUSTER", "COUNTKEYSINSLOT", slot) == 0, message=two.said)
    wait_until(lambda: not asked("EXISTS", "{a}q"), message=one.said)
    asked("TW.PUT", "{a}q", "next", "IN", 0, "PAYLOAD", "")
    pid_in(folder / "next.pid")
    go(folder, "next")
    wait_until(lambda: not asked("EXISTS", "{a}q") and not asked("EXISTS", "{a}r"), message=two.said)
    for node in (there, here):
        node.once("CLUSTER", "SETSLOT", slot, "NODE", cluster.id(there))
    begin("last", "{a}q")
    go(folder, "last")
    gone(moved, "last", "{a}q")
    assert one.stop() == [3, 0, 0, 0, 0] and two.stop() == [2, 0, 0, 0, 0]


# The page

@pytest.fixture
def tools(shared, tmp_path):
    """The folder of the programs that the page calls. If no server is named, it is that of this test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    address = f"{HOST}:{shared.port}"
    (folder / "tickwheel").write_text(
        '#!/bin/sh\ncase "$*" in\nwork*--store*) ;;\n'
        f'work*) shift; set -- work --redis {address} "$@" ;;\nesac\nexec {shlex.quote(COMMAND)} "$@"\n',
        encoding="ascii")
    (folder / "redis-cli").symlink_to(program("REDIS_CLI", "redis-cli"))
    (folder / "tickwheel").chmod(0o755)
    return folder


def test_the_page(shared, tools, tmp_path, monkeypatch):
    """Each worker of the page runs until its output is that of the page's next blocks, and is stopped."""
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    worker, out, seen = None, tmp_path / "out", 0
    for kind, text in blocks:
        text = text.replace("7379", str(shared.port))
        if kind == "sh" and "tickwheel work" in text:
            *before, last = text.splitlines()
            subprocess.run(["sh", "-ec", "\n".join(before)], cwd=tmp_path, check=True, timeout=PATIENCE)
            with open(out, "wb") as file:
                worker = subprocess.Popen(["sh", "-c", f"exec {last}"], cwd=tmp_path, stdout=file, stderr=file)
            Guard.tell("+", worker.pid)
            wait_until(lambda: "ready" in out.read_text(encoding="utf-8"))
        elif kind == "sh":
            subprocess.run(["sh", "-ec", text], cwd=tmp_path, check=True, timeout=PATIENCE,
                           stdout=subprocess.DEVNULL)
        elif "stopped; " in text:
            worker.send_signal(signal.SIGINT)
            assert worker.wait(PATIENCE) == 0
            assert out.read_text(encoding="utf-8").endswith(text)
            seen += 1
        elif "work: ready; " in text:
            wait_until(lambda text=text: re.match(pattern_of(text), out.read_text(encoding="utf-8")),
                       message=lambda text=text: f"{text}\nprinted:\n{out.read_text(encoding='utf-8')}")
            seen += 1
        if worker and worker.poll() is None and "work: ready; " in text and "shop.db" in text:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE) == 0
    assert seen >= 4, "the page has lost its blocks"
