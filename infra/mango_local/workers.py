"""A bounded pool of daemon threads: work beyond its size queues, and stopping never waits for longer than asked."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Workers:
    """Runs jobs on at most `limit` threads, first come, first served.

    The threads are daemons (unlike those of `concurrent.futures`), because a model request may take minutes and the
    process must be able to leave it behind: the table recovers it. Jobs must not raise.
    """

    def __init__(self, limit: int, name: str) -> None:
        self._limit = limit
        self._name = name
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._busy = 0
        self._stopped = False

    def submit(self, job: Callable[[], None]) -> None:
        """Queues a job; drops it after `stop`."""
        with self._changed:
            if self._stopped:
                return
            self._waiting.append(job)
            if self._busy + len(self._waiting) > self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
            self._changed.notify_all()

    def stop(self, seconds: float) -> int:
        """Drops what is queued, waits for what runs, at most so long; returns how many jobs were left running."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._busy == 0, seconds)
            return self._busy

    def _work(self) -> None:
        while (job := self._take()) is not None:
            try:
                job()
            finally:
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()

    def _take(self) -> Callable[[], None] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopped)
            if self._stopped:
                return None
            self._busy += 1
            return self._waiting.popleft()
