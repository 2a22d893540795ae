# SPDX-License-Identifier: MIT
"""The clients that queues and workers get. A program that only uses a file may have no redis-py."""
from __future__ import annotations

import inspect
import sys
from typing import Any, Dict, List, Sequence, Tuple

from ._file import File

PATIENCE = 5.0  # Seconds for a command that does not block, if the client has no shorter socket_timeout.


def of_redis_py() -> Tuple[type, ...]:
    """Returns the classes of redis-py for threads. Before their import nobody has such a client."""
    redis = sys.modules.get("redis")
    return (redis.Redis, redis.RedisCluster) if redis else ()


def is_cluster(client: Any) -> bool:
    return hasattr(client, "get_node_from_key")


def check_client(client: Any, asyncio: bool) -> None:
    """Raises TypeError for what is no client, and for a client of the other kind: its replies come differently,
    so its commands would be lost, or sent before an error."""
    send = getattr(client, "execute_command", None)
    if not callable(send):
        raise TypeError(f"client is {client!r}: expected a client of redis-py, or of tickwheel.connect(url)")
    if not asyncio and inspect.iscoroutinefunction(send):
        raise TypeError(f"client is {client!r}: expected one that is not of redis.asyncio, or tickwheel.aio")
    if asyncio and isinstance(client, (*of_redis_py(), File)):
        raise TypeError(f"client is {client!r}: expected one of redis.asyncio, or of tickwheel.aio.connect")


def check_role(pool: Any) -> None:
    """Raises ValueError for the client of a Sentinel's replicas."""
    if not getattr(pool, "is_master", True):
        raise ValueError("client is one of slave_for: expected one of master_for, as replicas give no tasks")


def groups(client: Any, keys: Sequence[str]) -> List[List[str]]:
    """Returns the queues in groups that one TW.TAKE can name: in a cluster those of one slot."""
    if not is_cluster(client):
        return [list(keys)]
    by_slot: Dict[int, List[str]] = {}
    for key in keys:
        by_slot.setdefault(client.keyslot(key), []).append(key)
    return list(by_slot.values())
