# SPDX-License-Identifier: MIT
"""A file for asyncio: tickwheel._file in threads of its own, as SQLite waits for locks and for the disk."""
from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Sequence, Union

from .. import _file
from .._words import Seconds


class File:
    """The queues of an SQLite file; see tickwheel.File. Its calls are done one after the other."""

    def __init__(self, path: Union[str, os.PathLike[str]], timeout: Seconds = 5.0) -> None:
        self.file = _file.File(path, timeout)
        self.threads = ThreadPoolExecutor(1, "tickwheel-file")

    def __repr__(self) -> str:
        return repr(self.file)

    async def execute_command(self, *words: Any, **_: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, self.file.execute_command, *words)

    async def close(self) -> None:
        """Closes the connection. A worker has one of its own."""
        await asyncio.get_running_loop().run_in_executor(self.threads, self.file.close)
        self.threads.shutdown(wait=False)
        self.file.close()


class FileLink:
    """A worker's way to a file; see tickwheel._file.FileLink."""
    generation = 0

    def __init__(self, file: File) -> None:
        self.caller, self.link = file, _file.FileLink(file.file)
        self.taking = ThreadPoolExecutor(1, "tickwheel-take")

    async def open(self) -> None:
        """The file is open."""

    async def take(self, words: Sequence[Any]) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self.taking, self.link.take, words)
        except asyncio.CancelledError:
            self.link.unblock()
            raise

    async def call(self, words: Sequence[Any]) -> Any:
        return await self.caller.execute_command(*words)

    async def leave(self) -> None:
        """A connection to a file does not break."""

    async def renew(self, error: BaseException, generation: int) -> None:
        """A file stays where it is."""

    async def unblock(self) -> bool:
        return self.link.unblock()

    async def close(self) -> None:
        self.link.unblock()
        self.taking.shutdown(wait=False)
