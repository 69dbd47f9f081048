"""One open stream's share of memory: the frames that it has not sent yet."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import StrEnum

from mango.domain.ledger import Cursor
from mango.stream.frames import Frame

MAX_FRAMES = 256
MAX_BYTES = 1024 * 1024
CHUNK_BYTES = 64 * 1024


class End(StrEnum):
    """Why a stream ends."""

    DELETED = "the session was deleted"
    OVERFLOW = "the client reads too slowly"
    REVOKED = "the credential is no longer valid"
    CLOSING = "the server stops"
    FAILED = "reading the ledger failed"
    TIME = "the connection's time is over"


class Subscriber:
    """Belongs to one event loop and is not thread-safe.

    Attributes:
        done: seq up to which every commit was queued or sent.
        end: why it ends after the frames that are queued, None while it goes on.
        cut: set when it must end at once, whatever is queued.
    """

    def __init__(self, start: Cursor) -> None:
        self.done = max(start.seq - 1, 0)
        self.end: End | None = None
        self.cut = asyncio.Event()
        self._cursor = start
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    def push(self, seq: int, frames: list[Frame]) -> None:
        """Queues a commit's frames, but for those at or before its cursor.

        A commit that follows an empty queue is always taken, whatever its size; else a queue that grows over its
        bounds cuts the subscriber off, who resumes from the last id it got.
        """
        if self.end is not None or seq <= self.done:
            return
        fresh = [frame for frame in frames if frame.cursor > self._cursor]
        size = sum(len(frame.data) for frame in fresh)
        if self._queue and (len(self._queue) + len(fresh) > MAX_FRAMES or self._bytes + size > MAX_BYTES):
            self.abandon(End.OVERFLOW)
            return
        self.done = seq
        self._queue.extend(frame.data for frame in fresh)
        self._bytes += size
        self._changed.set()

    def finish(self, reason: End, last: bytes = b"") -> None:
        """Ends it after what is queued, and after `last`."""
        if self.end is None:
            if last:
                self._queue.append(last)
            self.end = reason
            self._changed.set()

    def abandon(self, reason: End) -> None:
        """Ends it at once."""
        if self.end is None:
            self.end = reason
        self._queue.clear()
        self.cut.set()
        self._changed.set()

    def take(self) -> bytes:
        """The next whole frames, about 64 KiB of them; empty when nothing is queued."""
        taken: list[bytes] = []
        size = 0
        while self._queue and size < CHUNK_BYTES:
            taken.append(self._queue.popleft())
            size += len(taken[-1])
        self._bytes -= size
        self._changed.clear()
        return b"".join(taken)

    async def wait(self, seconds: float) -> bool:
        """Until something is queued or it ends, at most so long; False if nothing happened."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True
