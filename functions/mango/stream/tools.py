"""What the readers of one process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from mango.ports import Blobs, Clock, Ids, Store

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tools:
    """The ports that streams use, and the threads in which they are called, never on the event loop."""

    store: Store
    blobs: Blobs
    clock: Clock
    ids: Ids
    threads: Executor

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a function that may block."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, lambda: function(*args, **kwargs))
