# SPDX-License-Identifier: MIT
"""The errors of the packages for Python and Node, by the calls of errors.txt: each is told as `CLASS: TEXT`."""
import json
import sqlite3

import tickwheel
import tickwheel.aio
from node_homes import NodeError, NodeQueue, Program
from node_packages import DRIVER
from python_homes import Awaited
from tickwheel import _errors


def told(error):
    return f"{type(error).__name__}: {error}"


def value_of(word):
    try:
        return json.loads(word)
    except ValueError:
        return word


def options_of(words):
    """The arguments by name, which are written as name=JSON, or name=TEXT."""
    return {name: value_of(value) for name, _, value in (word.partition("=") for word in words)}


class Language:
    """Clients of a file, and of a server for each of its users and ports."""

    def __init__(self):
        self.clients = {}

    def queue(self, key, address):
        known = tuple(address.items())
        if known not in self.clients:
            self.clients[known] = self.open(**address)
        return self.queue_of(self.clients[known], key)

    def call(self, words, address):
        """Does `[in QUEUE] METHOD ARGUMENT... NAME=VALUE...`. Returns the error, or None."""
        key, words = (words[1], words[2:]) if words[0] == "in" else ("q", words)
        name, *rest = words
        named = [word for word in rest if "=" in word and not word.startswith("{")]
        values = [json.loads(word) if word.startswith("{") else word for word in rest if word not in named]
        try:
            getattr(self.queue(key, address), name)(*values, **options_of(named))
        except (tickwheel.TickwheelError, NodeError) as error:
            return self.told(error)
        return None

    def end(self):
        pass


class Python(Language):
    queue_of, told = staticmethod(tickwheel.Queue), staticmethod(told)

    def open(self, path=None, **server):
        if path:
            return tickwheel.File(path, 0)
        import redis  # a file needs no redis-py
        return redis.Redis(**server)

    def says(self, home, text):
        """What becomes of the error of a driver with this text."""
        try:
            with _errors.TRANSLATED:
                raise self.error(home, text)
        except tickwheel.TickwheelError as one:
            return told(one)

    @staticmethod
    def error(home, text):
        if home != "redis":
            return sqlite3.IntegrityError(text)
        from redis.connection import BaseParser
        return BaseParser().parse_error(text)


class Asyncio(Python):
    def open(self, path=None, **server):
        if path:
            return tickwheel.aio.File(path, 0)
        import redis.asyncio
        return redis.asyncio.Redis(**server)

    def queue_of(self, client, key):
        return Awaited(tickwheel.aio.Queue(client, key))


class Node(Language):
    def __init__(self, package):
        super().__init__()
        self.program, self.opened = Program(package, {}), None

    def open(self, path=None, host="", port=0, username="", password=""):
        user = f"{username}:{password}@" if username else ""
        url, options = f"redis://{user}{host}:{port}", {}
        if path:
            url, options = f"sqlite:///{path}", {"driver": DRIVER, "timeout": 0}
        return url, options

    def queue_of(self, client, key):
        if client is not self.opened:
            self.program.ask("open", *client)
            self.opened = client
        return NodeQueue(self.program, key)

    @staticmethod
    def told(error):
        return f"{error.kind}: {error}"

    def says(self, home, text):
        try:
            self.program.ask("says", home, text)
        except NodeError as error:
            return self.told(error)

    def end(self):
        self.program.end()


LANGUAGES = {"python_file": (Python, Asyncio), "python_redis": (Python, Asyncio),
             "node_file": (lambda: Node(DRIVER), ), "node_redis": (lambda: Node("redis"), )}
