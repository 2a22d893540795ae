# SPDX-License-Identifier: MIT
"""The connections of a worker. They have the settings of the caller's client, and are the worker's own: one
may block, and its socket_timeout is longer than the BLOCK of TW.TAKE. The others give up early, since leases
run meanwhile."""
from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import redis
import redis.exceptions
from redis.cluster import RedisCluster
from redis.sentinel import SentinelConnectionPool

from . import _errors
from ._clients import PATIENCE, check_role
from ._words import Value

CONNECTION = (redis.ConnectionError, redis.TimeoutError, OSError, asyncio.TimeoutError,
              redis.exceptions.RedisClusterException, redis.exceptions.ClusterError)

# The worker has its own tries, and has to know when a connection is a new one. Each pool makes the rest anew:
# from version 7 on redis-py keeps handlers and registries of the pool among its settings.
OWN = {"retry", "retry_on_error", "retry_on_timeout", "health_check_interval", "connection_pool",
       "response_callbacks", "event_dispatcher", "himport_registry"}
OWN_PREFIXES = ("maint_", "orig_", "oss_")


def settings_of(pool_settings: Dict[str, Any], timeout: float) -> Dict[str, Any]:
    """Returns the settings for a connection like those of a pool, with this socket_timeout."""
    settings = {name: value for name, value in pool_settings.items()
                if name not in OWN and not name.startswith(OWN_PREFIXES)}
    return {**settings, "socket_timeout": timeout, "decode_responses": False, "max_connections": 2**31}


def timeouts(pool_settings: Dict[str, Any], lease_s: float, block_s: float) -> Tuple[float, float]:
    """Returns the time limits of a call and of a TW.TAKE."""
    call = min(pool_settings.get("socket_timeout") or PATIENCE, PATIENCE, max(1.0, lease_s / 3))
    return call, block_s + call


def address_in(error: BaseException) -> Tuple[str, int]:
    """Returns the address that MOVED or ASK names: the error ends with `slot host:port`."""
    host, _, port = str(error).rsplit(" ", 1)[-1].rpartition(":")
    return host, int(port)


class Call:
    """A command, and the thread that waits for its end, or for its turn to send."""

    def __init__(self, words: Sequence[Value]) -> None:
        self.words, self.woken, self.ended = words, threading.Event(), False
        self.reply: Any = None  # Or an error.

    def end(self, reply: Any) -> None:
        self.reply, self.ended = reply, True
        self.woken.set()


class Calls:
    """Lets one thread at a time send, and that thread sends the commands of all threads that wait by then, in
    one pipeline. So a worker with a hundred threads needs one connection, and few system calls for a job.
    `send` gets the words of some commands, and returns the reply or the error of each."""

    def __init__(self, send: Callable[[List[Sequence[Value]]], List[Any]]) -> None:
        self.send, self.lock, self.sending = send, threading.Lock(), False
        self.waiting: List[Call] = []

    def call(self, words: Sequence[Value]) -> Any:
        """Returns the reply to a command, or raises its error."""
        one = Call(words)
        with self.lock:
            self.waiting.append(one)
            waits, self.sending = self.sending, True
        try:
            if waits:
                one.woken.wait()
            if not one.ended:
                self.send_all()
        except BaseException:  # The main thread was interrupted: the others go on.
            self.leave(one)
            raise
        if isinstance(one.reply, BaseException):
            raise one.reply
        return one.reply

    def send_all(self) -> None:
        with self.lock:
            some, self.waiting = self.waiting, []
        replies: List[Any] = [redis.ConnectionError("the call was interrupted")] * len(some)
        try:
            replies = self.send([one.words for one in some])
        except Exception as error:  # pylint: disable=broad-except
            replies = [error] * len(some)
        finally:
            for one, reply in zip(some, replies):
                one.end(reply)
            self.pass_on()

    def pass_on(self) -> None:
        """Lets the next thread send."""
        with self.lock:
            self.sending = bool(self.waiting)
            if self.sending:
                self.waiting[0].woken.set()

    def leave(self, one: Call) -> None:
        with self.lock:
            if one not in self.waiting:
                return
            self.waiting.remove(one)
        if one.woken.is_set():
            self.pass_on()


class Link:
    """The connections to the server of some queues: one server, or the primary that the Sentinels name. All
    methods but take() are for any thread."""

    def __init__(self, client: Any, lease_s: float, block_s: float) -> None:
        self.client, self.lock, self.generation = client, threading.Lock(), 0
        self.lease_s, self.block_s, self.calls = lease_s, block_s, Calls(self.send)
        self.taker: Optional[Any] = None
        self.taker_id = 0
        self.build(client.connection_pool)

    def build(self, pool: Any, **address: Any) -> None:
        check_role(pool)
        call, take = timeouts(pool.connection_kwargs, self.lease_s, self.block_s)
        self.caller = redis.Redis(connection_pool=self.pool_like(pool, call, address))
        self.take_pool = self.pool_like(pool, take, address)

    @staticmethod
    def pool_like(pool: Any, timeout: float, address: Dict[str, Any]) -> Any:
        settings = {**settings_of(pool.connection_kwargs, timeout), **address}
        if isinstance(pool, SentinelConnectionPool):
            return type(pool)(pool.service_name, pool.sentinel_manager, is_master=True,
                              check_connection=pool.check_connection, connection_class=pool.connection_class,
                              **settings)
        return redis.ConnectionPool(connection_class=pool.connection_class, **settings)

    def take(self, words: Sequence[Value]) -> Any:
        """Sends TW.TAKE. Raises the errors of redis-py."""
        if self.taker is None:
            taker = redis.Redis(connection_pool=self.take_pool, single_connection_client=True)
            self.taker, self.taker_id = taker, self.id_of(taker)
        return self.taker.execute_command(*words)

    @staticmethod
    def id_of(taker: Any) -> int:
        try:
            return int(taker.execute_command("CLIENT ID"))
        except redis.ResponseError as error:
            if _errors.code(error) != "NOPERM":
                raise
            return 0  # Then nobody can unblock it, and a stop waits for the end of BLOCK.

    def call(self, words: Sequence[Value]) -> Any:
        """Sends another command. Raises the errors of redis-py."""
        return self.calls.call(words)

    def send(self, commands: List[Sequence[Value]]) -> List[Any]:
        """Sends commands. Returns for each its reply, or the error that the server replied with."""
        if len(commands) == 1:
            return [self.caller.execute_command(*commands[0])]
        with self.caller.pipeline(transaction=False) as pipe:
            for words in commands:
                pipe.execute_command(*words)
            replies: List[Any] = pipe.execute(raise_on_error=False)
        return replies

    def leave(self) -> None:
        """After an error of take(): the next take() has a new connection. Only for the thread that takes."""
        taker, self.taker, self.taker_id = self.taker, None, 0
        if taker is not None:
            connection = taker.connection
            taker.close()
            if connection is not None:
                connection.disconnect()

    def renew(self, error: BaseException, generation: int) -> None:
        """After an error, looks anew where the server is. `generation` is the one from before the call, so
        that threads that fail together look once. A pool of Sentinel looks by itself."""

    def unblock(self) -> bool:
        """Ends the wait of take(). Returns False if the server does not let us."""
        if self.taker_id:
            try:
                self.caller.execute_command("CLIENT UNBLOCK", self.taker_id)
            except (redis.RedisError, OSError):
                return False
        return True

    def hang_up(self) -> None:
        """Ends take() by an error, whatever the server does."""
        taker = self.taker
        own = getattr(taker and taker.connection, "_sock", None)
        if own is not None:
            with contextlib.suppress(OSError):
                own.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes the connections that are not in use: a thread that was given up may still send a result."""
        self.leave()
        for pool in (self.caller.connection_pool, self.take_pool):
            pool.disconnect(inuse_connections=False)


class ClusterLink(Link):
    """The connections to the node of a cluster that has the slot of these queues."""
    finding = threading.Lock()  # The client's table of slots is one for all links.

    def __init__(self, client: Any, key: str, lease_s: float, block_s: float) -> None:
        self.cluster, self.key = client, key
        super().__init__(self.of_node(), lease_s, block_s)

    def of_node(self) -> Any:
        """Returns the client that the cluster client has for the node."""
        return self.cluster.get_redis_connection(self.cluster.get_node_from_key(self.key))

    def address(self, error: BaseException) -> Dict[str, Any]:
        host, port = address_in(error)
        return {"host": host or self.caller.connection_pool.connection_kwargs["host"], "port": port}

    def take(self, words: Sequence[Value]) -> Any:
        try:
            return super().take(words)
        except redis.ResponseError as error:
            return self.asking(error, words, self.take_pool)

    def call(self, words: Sequence[Value]) -> Any:
        try:
            return super().call(words)
        except redis.ResponseError as error:
            return self.asking(error, words, self.caller.connection_pool)

    def asking(self, error: BaseException, words: Sequence[Value], pool: Any) -> Any:
        """Asks the node to which the slot is on its way, which has the queue already."""
        if _errors.code(error) != "ASK":
            raise error
        timeout = pool.connection_kwargs["socket_timeout"]
        other = self.pool_like(pool, timeout, self.address(error))
        try:
            client = redis.Redis(connection_pool=other, single_connection_client=True)
            client.execute_command("ASKING")
            return client.execute_command(*words)
        finally:
            other.disconnect()

    def renew(self, error: BaseException, generation: int) -> None:
        with self.lock:
            if generation != self.generation:
                return
            code = _errors.code(error)
            if code == "MOVED":
                self.turn_to(self.caller, **self.address(error))
            elif code in ("READONLY", "UNBLOCKED", "CLUSTERDOWN", "MASTERDOWN", _errors.LOST):
                self.find()

    def find(self) -> None:
        """Asks the cluster which node has the slot. Leaves all as it is if nobody answers."""
        with self.finding, contextlib.suppress(*CONNECTION, redis.RedisError):
            self.cluster.nodes_manager.initialize()
            self.turn_to(self.of_node())

    def turn_to(self, client: Any, **address: Any) -> None:
        old = [self.caller.connection_pool, self.take_pool]
        self.build(client.connection_pool, **address)
        self.generation += 1
        for pool in old:
            pool.disconnect(inuse_connections=False)


def link(client: Any, keys: Sequence[str], lease_s: float, block_s: float) -> Link:
    if isinstance(client, RedisCluster):
        return ClusterLink(client, keys[0], lease_s, block_s)
    return Link(client, lease_s, block_s)
