# SPDX-License-Identifier: MIT
"""A queue without its client's way to send: the part that threads and asyncio share."""
from __future__ import annotations

import sqlite3
from typing import Any, Optional, Tuple, TypeVar

from ._clients import check_client
from ._file import Within
from ._words import (MOST_TARGET_TRIES, Id, Moment, OneValue, Payload, Seconds, Words, encoded, entry_words,
                     id_word, option_words, payload_words, target_words)

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
        return ["TW.PUT", self.key, id_word(id),
                *option_words(delay, at, condition, keep_due, every, times, missed, max_late, tries, backoff),
                *payload_words(payload)]

    def send_words(self, target: Id, id: Optional[Id], payload: OneValue, *, kind: str = "stream",
                   maxlen: Optional[int] = None, delay: Optional[Seconds] = None,
                   at: Optional[Moment] = None, condition: Optional[str] = None, keep_due: bool = False,
                   every: Optional[Seconds] = None, times: Optional[int] = None, missed: Optional[str] = None,
                   max_late: Optional[Seconds] = None, tries: Optional[int] = None,
                   backoff: Optional[Tuple[Any, ...]] = None) -> Words:
        """Returns the words of send() as a list."""
        return ["TW.SEND", self.key, encoded(target, "target"), id_word(id),
                *option_words(delay, at, condition, keep_due, every, times, missed, max_late, tries, backoff,
                              MOST_TARGET_TRIES),
                *target_words(kind, maxlen), *entry_words(kind, payload)]
