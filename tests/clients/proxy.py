# SPDX-License-Identifier: MIT
"""A proxy between workers and a server, which loses replies as networks do.

    with Proxy(server) as proxy:
        subject = Subject("go", "mails", url=proxy.url)
        proxy.lose_reply("TW.ACK")   # the next TW.ACK is carried out, and its reply is lost with its connection
        with proxy.held():           # nothing passes
            proxy.cut()              # all connections end
"""
import contextlib
import socket
import threading

from harness import HOST, PATIENCE


class Pair:
    """A connection of a client, and the one of the proxy to the server."""

    def __init__(self, proxy, client):
        self.proxy, self.client = proxy, client
        self.server = socket.create_connection((HOST, proxy.server.port), PATIENCE)
        self.server.settimeout(None)
        self.doomed = False
        for run in (self.to_server, self.to_client):
            threading.Thread(target=run, daemon=True).start()

    def to_server(self):
        with contextlib.suppress(OSError):
            while data := self.client.recv(65536):
                self.proxy.open.wait(PATIENCE)
                if self.proxy.takes(data):
                    self.doomed = True
                self.server.sendall(data)
        self.close()

    def to_client(self):
        with contextlib.suppress(OSError):
            while data := self.server.recv(65536):
                self.proxy.open.wait(PATIENCE)
                if self.doomed:
                    self.proxy.lost.set()
                    break
                self.client.sendall(data)
        self.close()

    def close(self):
        for one in (self.client, self.server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Listens on a free port while it is open. `lost` is set when a reply has been lost."""

    def __init__(self, server):
        self.server, self.word, self.lock = server, None, threading.Lock()
        self.pairs, self.lost, self.open = [], threading.Event(), threading.Event()
        self.open.set()

    def __enter__(self):
        self.socket = socket.create_server((HOST, 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.cut()

    @property
    def url(self):
        return f"redis://{HOST}:{self.port}"

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                try:
                    self.pairs.append(Pair(self, client))
                except OSError:  # The server is down, so the client's connection ends too.
                    client.close()

    def lose_reply(self, word):
        """The reply to the next command with this word is lost, together with its connection."""
        self.word = word.lower().encode()

    @contextlib.contextmanager
    def held(self):
        """Nothing passes within this context; it comes late."""
        self.open.clear()
        try:
            yield self
        finally:
            self.open.set()

    def cut(self):
        """Ends all connections."""
        for pair in list(self.pairs):
            pair.close()

    def takes(self, data):
        """Whether the data has the command whose reply is to be lost; the word counts once."""
        with self.lock:
            found = self.word is not None and self.word in data.lower()
            if found:
                self.word = None
            return found
