# SPDX-License-Identifier: MIT
"""A terminal whose screen a test can read: a tmux with one window, in which a shell runs a command.

    terminal = Terminal(folder, "tickwheel", "top", cols=80, rows=24)     # a folder for its files
    terminal.sees("pending 5")                                           # waits for this text
    terminal.keys("q")
    terminal.ended_well()
    terminal.close()
"""
import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import tempfile

from eventually import PATIENCE, wait_until


class Terminal:
    def __init__(self, folder, *words, cols=80, rows=24, term="tmux-256color"):
        folder = self.folder = tempfile.mkdtemp(dir=folder)
        self.socket = os.path.join(folder, "tmux")
        script = os.path.join(folder, "script")
        with open(script, "w", encoding="ascii") as file:
            file.write(
                f"trap : INT QUIT\nstty -g > {folder}/before\nTERM={term} {shlex.join(words)}\n"
                f"echo $? > {folder}/status\nstty -g > {folder}/after\n"
                f"echo the end\nread line\n")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(cols), "-y", str(rows), f"/bin/sh {script}")

    def tmux(self, *words):
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "TMUX": ""}
        return subprocess.run(["tmux", "-u", "-S", self.socket, *words],
                              capture_output=True,
                              text=True,
                              timeout=PATIENCE,
                              check=True,
                              env=environment).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def sees(self, pattern):
        return wait_until(lambda: re.search(pattern, self.screen()),
                          lambda: f"no {pattern} on\n{self.screen()}")

    def resize(self, cols, rows):
        self.tmux("resize-window", "-x", str(cols), "-y", str(rows))

    def processes(self):
        """The ids of the shell and of the command, if it runs."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        with open(f"/proc/{shell}/task/{shell}/children", encoding="ascii") as file:
            return [int(pid) for pid in (shell, *file.read().split())]

    def pid(self):
        return self.processes()[1]

    def file(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return ""
        with open(path, encoding="ascii") as file:
            return file.read().strip()

    def close(self):
        """Takes the terminal away from the command, and waits for its end. A command that goes on is killed, so
        that it is not left behind, and the test fails."""
        with contextlib.ExitStack() as end:
            ends = []
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    ends.append(os.pidfd_open(pid))
                    end.callback(os.close, ends[-1])
            self.tmux("kill-server")
            left = [process for process in ends if not select.select([process], [], [], PATIENCE)[0]]
            for process in left:
                signal.pidfd_send_signal(process, signal.SIGKILL)
            assert not left, f"{len(left)} processes have outlived their terminal"

    def ended_well(self, status="0"):
        """Asserts that the command has left the terminal as it was: its modes, its screen and its cursor."""
        self.sees("the end")
        assert self.file("status") == status, self.screen()
        assert self.file("after") == self.file("before")
        assert "pending" not in self.screen(), self.screen()
        assert self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").split() == ["0", "1"]
