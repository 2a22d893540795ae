# SPDX-License-Identifier: MIT
"""Signals that stop a worker with threads."""
from __future__ import annotations

import signal
import socket
from typing import Any, Dict

STOPPING = (signal.SIGTERM, signal.SIGINT)
ENDED = b"\0"


class Bell:
    """Waits in the main thread for signals, and for the end of the worker. The kernel may hand a signal to any
    thread, and Python runs its handler in the main thread only, which might sleep on: the wakeup fd wakes
    it."""

    def __init__(self) -> None:
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        self.handlers: Dict[signal.Signals, Any] = {}
        self.old_fd = -1

    def __enter__(self) -> Bell:
        self.old_fd = signal.set_wakeup_fd(self.writer.fileno(), warn_on_full_buffer=False)
        self.handlers = {number: signal.signal(number, lambda *_: None) for number in STOPPING}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self.old_fd)
        self.reader.close()
        self.writer.close()

    def rings(self) -> bool:
        """Waits. Returns True for a signal that stops, False at the end of the worker."""
        while True:
            number = self.reader.recv(1)
            if number == ENDED or number[0] in STOPPING:
                return number != ENDED

    def end(self) -> None:
        """Tells that the worker has ended; for any thread."""
        self.writer.send(ENDED)
