"""One shared reader per watched thread: the cost of an event does not depend on how many watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from mango.domain.transaction import Item, StoreUnavailable
from mango.stream.frames import deleted_frame
from mango.stream.reading import CommitFrames, decode, look, read_page
from mango.stream.subscriber import End, Subscriber
from mango.stream.tools import Tools

log = logging.getLogger("mango.stream")

MAX_OFFERED = 16
"""Commits held that were announced before the one that precedes them."""
STORE_PAUSE = 0.5


class Pace(NamedTuple):
    """Seconds between two looks at the table: while the thread runs or did just now, and when it is idle.

    Commits of this process announce themselves, so the looks are for those of others.
    """

    active: float = 0.25
    idle: float = 1.0


DOUBT = 10.0
"""Seconds during which a commit whose answer was lost may still arrive at the table, and is looked for."""
DOUBT_PACE = 0.5

QUIET_AFTER = 10.0
"""Seconds without a commit after which a thread that does not run counts as idle."""


class Feed:
    """Reads a thread's ledger from where it was created and hands each commit to its subscribers.

    Lives on one event loop; only `offer`, `nudge` and `doubt` may be called through `call_soon_threadsafe`.

    Attributes:
        seq: the last commit that was handed out.
        subscribers: who gets them.
    """

    def __init__(self, tools: Tools, session_id: str, thread_id: str, seq: int, pace: Pace) -> None:
        self.seq = seq
        self._tools = tools
        self._session_id = session_id
        self._thread_id = thread_id
        self._pace = pace
        self.subscribers: set[Subscriber] = set()
        self._offered: dict[int, Item] = {}
        self._woken = asyncio.Event()
        self._closing = False
        self._look_now = True  # what was committed before the feed existed was announced to nobody
        self._running = False
        self._last_commit = 0.0
        self._doubtful_until = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self, on_end: Callable[[], None]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda task: self._ended(task, on_end))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def add(self, subscriber: Subscriber) -> None:
        self.subscribers.add(subscriber)
        if subscriber.done > self.seq:
            self.nudge()

    def remove(self, subscriber: Subscriber) -> bool:
        """True if it was the last."""
        self.subscribers.discard(subscriber)
        return not self.subscribers

    def finish(self, reason: End, last: bytes = b"") -> None:
        """Ends every subscriber at the event it has reached."""
        for subscriber in self.subscribers:
            subscriber.finish(reason, last)

    def offer(self, seq: int, item: Item) -> None:
        """A commit of this process; saves the read when it is the next one."""
        if seq <= self.seq:
            return
        if len(self._offered) < MAX_OFFERED:
            self._offered[seq] = item
        else:
            self._look_now = True
        self._woken.set()

    def nudge(self) -> None:
        """Something may have happened that is worth a look."""
        self._look_now = True
        self._woken.set()

    def doubt(self) -> None:
        """A commit of this process may be applied by now, or will be shortly, or never."""
        self._doubtful_until = asyncio.get_running_loop().time() + DOUBT
        self.nudge()

    def close(self) -> None:
        """Ends every subscriber once they have all that is committed by now."""
        self._closing = True
        self.nudge()

    async def _run(self) -> None:
        self._last_commit = asyncio.get_running_loop().time()
        while True:
            try:
                await self._publish_offered()
                if self._offered or self._look_now:
                    self._look_now = False
                    if await self._catch_up():
                        return
                if self._closing and not self._look_now:
                    return self.finish(End.CLOSING)
            except StoreUnavailable as error:
                if self._closing:
                    return self.finish(End.CLOSING)
                log.warning("stream of %s: %s; again in %g s", self._session_id, error, STORE_PAUSE)
                self._look_now = True
                await asyncio.sleep(STORE_PAUSE)
                continue
            await self._sleep()

    async def _sleep(self) -> None:
        if not self._look_now:
            try:
                async with asyncio.timeout(self._interval()):
                    await self._woken.wait()
            except TimeoutError:
                self._look_now = True
        self._woken.clear()

    def _interval(self) -> float:
        now = asyncio.get_running_loop().time()
        active = self._running or now - self._last_commit < QUIET_AFTER
        usual = self._pace.active if active else self._pace.idle
        return min(usual, DOUBT_PACE) if now < self._doubtful_until else usual

    async def _publish_offered(self) -> None:
        while (item := self._offered.pop(self.seq + 1, None)) is not None:
            self._publish(await self._tools.run(decode, self._tools.blobs, item))

    async def _catch_up(self) -> bool:
        """Looks, and reads what is new; True if the session is gone."""
        store, session_id, thread_id = self._tools.store, self._session_id, self._thread_id
        state = await self._tools.run(look, store, session_id, thread_id)
        self._running = state.running
        if state.head > self.seq or state.deleted:
            await self._read()
        for seq in [seq for seq in self._offered if seq <= self.seq]:
            del self._offered[seq]
        if state.deleted:
            frame = deleted_frame(self._tools.ids.new("sevt"), self._tools.clock.now())
            self.finish(End.DELETED, frame)
        return state.deleted

    async def _read(self) -> None:
        tools = self._tools
        while page := await tools.run(read_page, tools.store, tools.blobs, self._session_id, self._thread_id, self.seq):
            for commit in page:
                self._publish(commit)

    def _publish(self, commit: CommitFrames) -> None:
        self.seq = commit.seq
        self._last_commit = asyncio.get_running_loop().time()
        for subscriber in self.subscribers:
            subscriber.push(commit.seq, commit.frames)

    def _ended(self, task: asyncio.Task[None], on_end: Callable[[], None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the stream reader of %s failed", self._session_id, exc_info=error)
        self.finish(End.FAILED)
        on_end()
