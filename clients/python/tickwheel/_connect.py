# SPDX-License-Identifier: MIT
"""The address of a home of tasks, as a URL."""
from __future__ import annotations

import importlib
import inspect
import re
from typing import Any, Dict, NamedTuple, Tuple
from urllib.parse import unquote, urlsplit

from ._errors import TRANSLATED

SENTINEL_PORT = 26379
PATIENCE_S = 5.0  # A node or a sentinel that hangs is left for another one.
SCHEMES = ("redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster or sqlite, "
           "and :// behind it")


class Kit(NamedTuple):
    """The classes of redis-py: those for threads, or those for asyncio."""
    server: Any
    cluster: Any
    sentinel: Any


def kit_of(package: str) -> Kit:
    """Imports redis or redis.asyncio. Raises ModuleNotFoundError where it is not installed."""
    try:
        clients, sentinels = importlib.import_module(package), importlib.import_module(package + ".sentinel")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}: install redis-py, Debian's python3-redis, or use a file, "
                                  "sqlite:///FILE", name=error.name) from error
    return Kit(clients.Redis, clients.RedisCluster, sentinels.Sentinel)


def place_of(text: str) -> Tuple[str, int]:
    """Reads HOST, HOST:PORT or [IPV6]:PORT."""
    one = urlsplit("//" + text)
    return one.hostname or "127.0.0.1", one.port or SENTINEL_PORT


def user_of(text: str) -> Dict[str, Any]:
    """Reads USER or USER:PASSWORD."""
    parts = [unquote(part) for part in text.split(":", 1)]
    return {name: part for name, part in zip(("username", "password"), parts) if part}


def primary(address: str, tls: Dict[str, bool], package: str, options: Dict[str, Any]) -> Any:
    """Returns the client for the primary of a service that sentinels name."""
    places, _, path = address.partition("/")
    name, _, db = path.partition("/")
    user, _, places = places.rpartition("@")
    if not name or not places:
        raise ValueError("the url names no service: expected redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB")
    settings: Dict[str, Any] = {"socket_timeout": PATIENCE_S, **tls}
    own = {**settings, **options.pop("sentinel_kwargs", {})}
    if not re.fullmatch("[0-9]*", db):
        raise ValueError(f"the database of the url is {db!r}: expected a number")
    found = kit_of(package).sentinel([place_of(one) for one in places.split(",")], sentinel_kwargs=own)
    return found.master_for(unquote(name), **{**settings, **user_of(user), "db": int(db or 0), **options})


def check_tls(cluster: Any, package: str) -> None:
    """Raises ValueError if this class would connect without TLS, and so send the password: that of asyncio does
    before redis-py 4.4."""
    if package == "redis.asyncio" and "ssl" not in inspect.signature(cluster).parameters:
        found = importlib.import_module("redis").__version__
        raise ValueError(f"the url's scheme is 'rediss+cluster', and redis-py is {found}: expected 4.4 or "
                         "later, in which a cluster of asyncio has TLS")


def connect(url: str, file: Any, package: str, options: Dict[str, Any]) -> Any:
    """Returns a client. `file` is the class of files, and `package` has those of servers."""
    if not isinstance(url, str):
        raise TypeError(f"url is {url!r}: expected a str")
    scheme, _, address = url.partition("://")
    kind, _, way = scheme.partition("+")
    if scheme == "sqlite":
        if not address.startswith("/") or len(address) < 2 or "?" in address:
            raise ValueError(f"url is {url!r}: expected sqlite:///FILE, or sqlite:////FOLDER/FILE")
        return file(unquote(address[1:]), **options)
    if kind in ("redis", "rediss") and way == "sentinel":
        return primary(address, {"ssl": True} if kind == "rediss" else {}, package, dict(options))
    if kind in ("redis", "rediss") and way == "cluster":
        cluster = kit_of(package).cluster
        if kind == "rediss":
            check_tls(cluster, package)
        with TRANSLATED:  # It asks the nodes.
            return cluster.from_url(f"{kind}://{address}", **{"socket_timeout": PATIENCE_S, **options})
    if scheme in ("redis", "rediss", "unix") and address:
        return kit_of(package).server.from_url(url, **options)
    raise ValueError(f"the url's scheme is {scheme!r}: expected {SCHEMES}")
