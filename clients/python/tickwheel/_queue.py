# SPDX-License-Identifier: MIT
"""A queue without its client's way to send: the part that threads and asyncio share."""
from __future__ import annotations

import sqlite3
from typing import Any, Optional, Tuple, TypeVar

from ._clients import check_client
from ._file import Within
from ._words import (CENTURY_MS, MOST_TIMES, MOST_TRIES, Id, Moment, Payload, Seconds, Words,
                     backoff_words, encoded, late_words, milliseconds, one_of, payload_words, when, whole)

Q = TypeVar("Q", bound="QueueBase")


class QueueBase:
    _asyncio = False

    def __init__(self, client: Any, key: Id) -> None:
        if isinstance(client, sqlite3.Connection):
            client = Within(client)
        check_client(client, asyncio=self._asyncio)
        encoded(key, "key")
        self.client, self.key = client, key

    def __repr__(self) -> str:
        return f"<Queue {self.key!r}>"

    def on(self: Q, client: Any) -> Q:
        """Returns the same queue through another client: a pipeline, for example."""
        return type(self)(client, self.key)

    def put_words(self, id: Optional[Id], payload: Payload, *, delay: Optional[Seconds] = None,
                  at: Optional[Moment] = None, condition: Optional[str] = None, keep_due: bool = False,
                  every: Optional[Seconds] = None, times: Optional[int] = None, missed: Optional[str] = None,
                  max_late: Optional[Seconds] = None, tries: Optional[int] = None,
                  backoff: Optional[Tuple[Any, ...]] = None) -> Words:
        """Returns the words of put() as a list: for a script's ARGV, or for another client."""
        words: Words = ["TW.PUT", self.key, "*" if id is None else encoded(id), *(when(delay, at) or ["IN", 0])]
        if id in ("*", b"*"):
            raise ValueError(f"id is {id!r}, for which the server makes another one: use None")
        known = ("nx", "xx") if keep_due else ("nx", "xx", "gt", "lt")
        words += one_of("condition", condition, *known)
        words += ["KEEPDUE"] if keep_due else []
        if every is not None:
            words += ["EVERY", milliseconds("every", every, 1, CENTURY_MS)]
        if times is not None:
            words += ["TIMES", whole("times", times, 1, MOST_TIMES)]
        words += late_words(missed, max_late)
        if tries is not None:
            words += ["TRIES", whole("tries", tries, 1, MOST_TRIES)]
        return words + backoff_words(backoff) + payload_words(payload)
