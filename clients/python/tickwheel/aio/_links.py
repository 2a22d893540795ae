# SPDX-License-Identifier: MIT
"""The connections of a worker for asyncio; see tickwheel._links, which has the same for threads."""
from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Dict, List, Optional, Sequence, Tuple

import redis.asyncio as redis
from redis import exceptions
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.sentinel import SentinelConnectionPool

from .. import _errors
from .._clients import check_role
from .._links import CONNECTION, address_in, settings_of, timeouts
from .._words import Value

async def close(client: Any) -> None:
    """Closes a client; the method's name depends on the version."""
    await (client.aclose() if hasattr(client, "aclose") else client.close())


def pool_like(pool: Any, timeout: float, address: Dict[str, Any]) -> Any:
    """Returns a pool with the settings of another pool, or of the node of a cluster."""
    settings = {**settings_of(pool.connection_kwargs, timeout), **address}
    if isinstance(pool, SentinelConnectionPool):
        return type(pool)(pool.service_name, pool.sentinel_manager, is_master=True,
                          check_connection=pool.check_connection, connection_class=pool.connection_class,
                          **settings)
    return redis.ConnectionPool(connection_class=pool.connection_class, **settings)


class Link:
    """The connections to the server of some queues: one server, or the primary that the Sentinels name."""

    def __init__(self, client: Any, lease_s: float, block_s: float) -> None:
        self.client, self.lease_s, self.block_s, self.generation = client, lease_s, block_s, 0
        self.waiting: List[Tuple[Sequence[Value], asyncio.Future[Any]]] = []
        self.sender: Optional[asyncio.Task[None]] = None
        self.taker: Optional[Any] = None
        self.taker_id = 0
        self.caller: Any = None
        self.take_pool: Any = None

    async def open(self) -> None:
        """Makes the pools. Raises the errors of redis-py in a cluster, which is asked for the node."""
        check_role(self.client.connection_pool)
        self.build(self.client.connection_pool)

    def build(self, pool: Any, **address: Any) -> None:
        call, take = timeouts(pool.connection_kwargs, self.lease_s, self.block_s)
        self.caller = redis.Redis(connection_pool=pool_like(pool, call, address))
        self.take_pool = pool_like(pool, take, address)

    async def take(self, words: Sequence[Value]) -> Any:
        """Sends TW.TAKE. Raises the errors of redis-py. If it is cancelled, its connection is closed."""
        if self.taker is None:
            self.taker = await redis.Redis(connection_pool=self.take_pool, single_connection_client=True)
            self.taker_id = await self.id_of(self.taker)
        return await self.taker.execute_command(*words)

    @staticmethod
    async def id_of(taker: Any) -> int:
        try:
            return int(await taker.execute_command("CLIENT ID"))
        except exceptions.ResponseError as error:
            if _errors.code(error) != "NOPERM":
                raise
            return 0  # Then nobody can unblock it, and a stop waits for the end of BLOCK.

    async def call(self, words: Sequence[Value]) -> Any:
        """Sends another command, in one pipeline with all that wait by then. Raises the errors of redis-py."""
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting.append((words, reply))
        if self.sender is None:
            self.sender = asyncio.create_task(self.send_all(), name="tickwheel-send")
        return await reply

    async def send_all(self) -> None:
        """Sends commands as long as some wait."""
        try:
            while self.waiting:
                some, self.waiting = self.waiting, []
                try:
                    replies = await self.send([words for words, _ in some])
                except Exception as error:  # pylint: disable=broad-except
                    replies = [error] * len(some)
                for (_, future), reply in zip(some, replies):
                    self.end(future, reply)
        finally:
            self.sender = None

    @staticmethod
    def end(future: asyncio.Future[Any], reply: Any) -> None:
        if future.done():  # Nobody waits for it any more.
            return
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    async def send(self, commands: List[Sequence[Value]]) -> List[Any]:
        """Sends commands. Returns for each its reply, or the error that the server replied with."""
        if len(commands) == 1:
            return [await self.caller.execute_command(*commands[0])]
        async with self.caller.pipeline(transaction=False) as pipe:
            for words in commands:
                pipe.execute_command(*words)
            replies: List[Any] = await pipe.execute(raise_on_error=False)
        return replies

    async def leave(self) -> None:
        """After an error of take(): the next take() has a new connection."""
        taker, self.taker, self.taker_id = self.taker, None, 0
        if taker is not None:
            connection = taker.connection
            await close(taker)
            if connection is not None:
                await connection.disconnect()

    async def renew(self, error: BaseException, generation: int) -> None:
        """After an error, looks anew where the server is. `generation` is the one from before the call, so
        that tasks that fail together look once. A pool of Sentinel looks by itself."""

    async def unblock(self) -> bool:
        """Ends the wait of take(). Returns False if the server does not let us."""
        if self.taker_id:
            try:
                await self.caller.execute_command("CLIENT UNBLOCK", self.taker_id)
            except (exceptions.RedisError, OSError):
                return False
        return True

    async def close(self) -> None:
        if self.caller is None:
            return  # Nobody has opened it.
        await self.leave()
        for pool in (self.caller.connection_pool, self.take_pool):
            with contextlib.suppress(*CONNECTION):
                await pool.disconnect()


class ClusterLink(Link):
    """The connections to the node of a cluster that has the slot of these queues."""

    def __init__(self, client: Any, key: str, lease_s: float, block_s: float, finding: asyncio.Lock) -> None:
        super().__init__(client, lease_s, block_s)
        self.key, self.finding = key, finding

    async def open(self) -> None:
        await self.client.initialize()
        self.build(self.client.get_node_from_key(self.key))

    def address(self, error: BaseException) -> Dict[str, Any]:
        host, port = address_in(error)
        return {"host": host or self.caller.connection_pool.connection_kwargs["host"], "port": port}

    async def take(self, words: Sequence[Value]) -> Any:
        try:
            return await super().take(words)
        except exceptions.ResponseError as error:
            return await self.asking(error, words, self.take_pool)

    async def call(self, words: Sequence[Value]) -> Any:
        try:
            return await super().call(words)
        except exceptions.ResponseError as error:
            return await self.asking(error, words, self.caller.connection_pool)

    async def asking(self, error: BaseException, words: Sequence[Value], pool: Any) -> Any:
        """Asks the node to which the slot is on its way, which has the queue already."""
        if _errors.code(error) != "ASK":
            raise error
        other = pool_like(pool, pool.connection_kwargs["socket_timeout"], self.address(error))
        client = await redis.Redis(connection_pool=other, single_connection_client=True)
        try:
            await client.execute_command("ASKING")
            return await client.execute_command(*words)
        finally:
            await close(client)
            await other.disconnect()

    async def renew(self, error: BaseException, generation: int) -> None:
        async with self.finding:
            if generation != self.generation:
                return
            code = _errors.code(error)
            if code == "MOVED":
                await self.turn_to(self.caller.connection_pool, **self.address(error))
            elif code in ("READONLY", "UNBLOCKED", "CLUSTERDOWN", "MASTERDOWN", _errors.LOST):
                await self.find()

    async def find(self) -> None:
        """Asks the cluster which node has the slot. Leaves all as it is if nobody answers."""
        with contextlib.suppress(*CONNECTION, exceptions.RedisError):
            await self.client.nodes_manager.initialize()
            await self.turn_to(self.client.get_node_from_key(self.key))

    async def turn_to(self, pool: Any, **address: Any) -> None:
        old = [self.caller.connection_pool, self.take_pool]
        self.build(pool, **address)
        self.generation += 1
        for one in old:
            await one.disconnect(inuse_connections=False)


def link(client: Any, keys: Sequence[str], lease_s: float, block_s: float, finding: asyncio.Lock) -> Link:
    if isinstance(client, RedisCluster):
        return ClusterLink(client, keys[0], lease_s, block_s, finding)
    return Link(client, lease_s, block_s)
