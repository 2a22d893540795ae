# SPDX-License-Identifier: MIT
"""tools/serve, which `make serve` calls: started, used as its output says, stopped, started again."""
import contextlib
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys

import pytest
import redis

from harness import HOST, PATIENCE, ROOT, free_port, module_path, now_ms, program, wait_until

SERVE = [sys.executable, os.path.join(ROOT, "tools", "serve")]


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    """tools/serve takes the first redis-server in PATH. The tests may be for another server than the
    machine's."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "redis-server").symlink_to(program("REDIS_SERVER", "redis-server"))
    monkeypatch.setenv("PATH", str(tmp_path / "first"), prepend=os.pathsep)


class Serving:
    """A tools/serve in the background, with its output."""

    def __init__(self, port, folder, **options):
        line = [*SERVE, "--port", str(port), "--data", str(folder), "--module", module_path()]
        self.process = subprocess.Popen(line,
                                        stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE,
                                        process_group=0,
                                        **options)
        self.port, self.welcome = port, ""

    def ready(self):
        """Reads up to the last line of the welcome."""
        while "Ctrl-C" not in self.welcome:
            assert select.select([self.process.stdout], [], [], PATIENCE)[0], self.welcome
            piece = os.read(self.process.stdout.fileno(), 65536).decode()
            assert piece, self.welcome + self.process.stderr.read().decode()
            self.welcome += piece
        return self

    def client(self):
        return redis.Redis(host=HOST, port=self.port, decode_responses=True, socket_timeout=PATIENCE)

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.ended()

    def ended(self):
        output, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output.decode(), errors.decode()


@pytest.fixture
def serve(tmp_path):
    running = []

    def start(port=None, folder=tmp_path / "var", **options):
        running.append(Serving(port or free_port(), folder, **options))
        return running[-1]

    yield start
    for serving in running:
        if serving.process.poll() is None:
            serving.stop(signal.SIGTERM)


def nobody_listens(port):
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex((HOST, port)) != 0


def commands_of(welcome):
    """The commands for a task that arrives, for a task's life, for a worker, and for a task of each start."""
    lines = re.findall(r"^  ((?:JOB=\$\()?redis-cli .*|build/tickwheel .*)$", welcome, re.MULTILINE)
    assert len(lines) == 11, welcome
    return lines[:3], lines[3:8], lines[8:10], lines[10:]


def test_the_first_commands_show_a_task_arriving(serve):
    serving = serve().ready()
    commands, *_ = commands_of(serving.welcome)
    began = now_ms()
    added, following, arrived = (subprocess.run(shlex.split(line),
                                                capture_output=True,
                                                text=True,
                                                timeout=PATIENCE,
                                                check=True).stdout.split("\n") for line in commands)
    assert added[0] == "order:42"
    assert following[0] == "order:42" and int(following[1]) >= began + 5000
    assert arrived[:2] == ["orders:unpaid", "order 42 is unpaid"]
    assert now_ms() >= began + 5000
    status, output, errors = serving.stop()
    assert (status, errors) == (0, "")
    assert "Stopped. Tasks: 0;" in output


def test_the_next_commands_show_the_life_of_a_task(serve):
    """In one shell, as a reader pastes them. A mark follows each line, so that the outputs stay apart."""
    serving = serve().ready()
    _, commands, *_ = commands_of(serving.welcome)
    began = now_ms()
    script = "\n".join(f"{line}\necho ---" for line in commands)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    put, first, failed, second, ended, _ = (output.split() for output in done.stdout.split("---"))
    assert put == ["remind:ann"]
    (queue, name, token, due, attempt), other = first[:5], second[2]
    assert (queue, name, attempt) == ("mails", "remind:ann", "1") and int(due) >= began + 3000
    assert int(failed[0]) >= int(due) + 1800  # 2000, and its jitter
    assert second == ["mails", "remind:ann", other, due, "2", "remind", "ann", "0"] and other != token
    assert ended == ["1"]
    assert now_ms() >= int(failed[0])
    assert serving.client().exists("mails") == 0


def test_two_commands_show_a_worker(serve):
    """Its command fails once. The reader presses Ctrl-C when nothing is left to do."""
    serving = serve().ready()
    *_, (put, work), _ = commands_of(serving.welcome)
    subprocess.run(shlex.split(put), capture_output=True, timeout=PATIENCE, check=True)
    words = shlex.split(work.replace("build/tickwheel", os.environ["TICKWHEEL_COMMAND"], 1))
    worker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: not serving.client().exists("mails"))
    worker.send_signal(signal.SIGINT)
    output, errors = worker.communicate(timeout=PATIENCE)
    assert (worker.returncode, output) == (0, "remind bob\n" * 2)
    assert "1 done, 1 failed, 0 died" in errors


def test_the_last_command_files_a_task_once(serve):
    """The reader sends it twice, as a program that starts twice does."""
    serving = serve().ready()
    *_, [put] = commands_of(serving.welcome)
    dues = []
    for _ in range(2):
        subprocess.run(shlex.split(put), capture_output=True, timeout=PATIENCE, check=True)
        dues.append(serving.client().execute_command("TW.NEXT", "reports"))
    assert dues[0] == dues[1] and dues[0][0] == "hourly"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_restart_finds_every_pending_task(serve, number):
    serving = serve().ready()
    assert "Tasks: 0." in serving.welcome
    r = serving.client()
    for i in range(100):
        r.execute_command("TW.SEND", f"s{i % 7}", "t", f"id{i}", "IN", 3600000, "PAYLOAD", "a", i)
    status, output, errors = serving.stop(number)
    assert (status, errors) == (0, "")
    assert "Stopped. Tasks: 100;" in output
    assert nobody_listens(serving.port)
    again = serve().ready()
    assert "Tasks: 100." in again.welcome
    assert sum(again.client().execute_command("TW.LEN", f"s{i}") for i in range(7)) == 100


def test_tasks_are_counted_when_all_are_loaded(serve):
    """A past bug: the welcome gave the number of tasks when the server first replied, in the middle of
    loading."""
    serving = serve().ready()
    r = serving.client()
    for low in range(0, 300000, 10000):
        batch = r.pipeline(transaction=False)
        for i in range(low, low + 10000):
            batch.execute_command("TW.SEND", "s", "t", i, "IN", 36000000, "PAYLOAD", "n", i)
        batch.execute()
    assert serving.stop()[0] == 0
    assert "Tasks: 300000." in serve().ready().welcome


def test_a_task_that_came_due_meanwhile_arrives_after_the_restart(serve):
    serving = serve().ready()
    with serving.client().pipeline(transaction=True) as both:
        both.execute_command("TW.SEND", "s", "t", "k", "IN", 100, "LIST", "PAYLOAD", "late")
        both.execute_command("CLIENT", "PAUSE", 3600000, "WRITE")  # It is not delivered before the end.
        both.execute()
    due = now_ms() + 100
    assert serving.stop()[0] == 0
    wait_until(lambda: now_ms() > due)
    assert serve().ready().client().blpop("t", PATIENCE) == ("t", "late")


def test_it_keeps_what_it_is_told_even_if_it_is_killed(serve, tmp_path):
    serving = serve().ready()
    r = serving.client()
    assert r.config_get("appendonly", "appendfsync", "bind", "save") == {
        "appendonly": "yes", "appendfsync": "everysec", "bind": HOST, "save": ""}
    r.execute_command("TW.SEND", "s", "t", "k", "IN", 3600000, "PAYLOAD", "a", "b")
    serving.process.kill()
    serving.process.wait(PATIENCE)  # Until then its number is that of a program that runs, and has the lock.
    wait_until(lambda: nobody_listens(serving.port), message="the server outlives tools/serve")
    assert serve().ready().client().execute_command("TW.LEN", "s") == 1


def test_a_server_that_is_shut_down_by_a_client_ends_it(serve):
    serving = serve().ready()
    with contextlib.suppress(redis.exceptions.ConnectionError):
        serving.client().execute_command("SHUTDOWN")
    status, output, errors = serving.ended()
    assert (status, errors) == (0, "")
    assert "Stopped." in output


def test_a_server_that_dies_is_told_of(serve):
    serving = serve().ready()
    os.kill(serving.client().info("server")["process_id"], signal.SIGKILL)
    status, _, errors = serving.ended()
    assert status == 1
    assert "tools/serve: the server has stopped with exit status -9" in errors


def refused(serving):
    status, output, errors = serving.ended()
    assert (status, output) == (1, "")
    assert "Traceback" not in errors
    return errors


def test_a_port_that_somebody_has(serve):
    with contextlib.closing(socket.socket()) as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        errors = refused(serve(port))
    assert (f"port {port} cannot be used (Address already in use); "
            "choose another port: make serve PORT=") in errors


def test_data_that_another_one_uses(serve):
    serve().ready()
    assert "another make serve runs" in refused(serve())


@pytest.mark.parametrize("port", ["0", "65536", "99999999", "-1", "x", "", "7379x", "73 79"])
def test_a_port_that_is_none(port):
    done = subprocess.run([*SERVE, "--port", port],
                          capture_output=True,
                          text=True,
                          timeout=PATIENCE,
                          check=False)
    assert done.returncode == 2
    assert re.search("expected (a port from 1 to 65535|one argument)", done.stderr), done.stderr


def test_what_is_missing_is_named(serve, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    assert "redis-server is not installed" in refused(serve(env={"PATH": str(tools)}))
    (tools / "redis-server").symlink_to(shutil.which("redis-server"))
    assert "redis-cli is not installed" in refused(serve(env={"PATH": str(tools)}))
    done = subprocess.run([*SERVE, "--module", "/nonexistent/tickwheel.so"], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert "there is no module at /nonexistent/tickwheel.so: make module builds it" in done.stderr


def test_a_folder_that_cannot_be_written(serve, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(serve(folder=tmp_path / "file" / "var"))


def test_a_module_that_is_none(serve, tmp_path):
    fake = tmp_path / "fake.so"
    fake.write_text("this is no library")
    done = subprocess.run(
        [*SERVE, "--port",
         str(free_port()), "--data",
         str(tmp_path / "v"), "--module",
         str(fake)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False)
    assert done.returncode == 1
    assert "the server has stopped with exit status 1" in done.stderr
    assert "fake.so" in done.stderr
