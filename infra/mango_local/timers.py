"""One thread that calls back at points in time; a wait holds an entry of a heap and nothing else."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable

from mango.domain.times import SECOND
from mango.ports import Clock

LONGEST_SLEEP = 5.0
"""Seconds after which the clock is read again, so that a changed clock or a machine's sleep is noticed."""


class Timers:
    """Calls `callback` in its own thread, never before the wall clock shows the time. Callbacks must be short."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._changed = threading.Condition()
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def at(self, moment: int, callback: Callable[[], None]) -> None:
        """Calls back at a moment in microseconds; forgets it after `stop`."""
        with self._changed:
            if self._stopped:
                return
            heapq.heappush(self._heap, (moment, next(self._order), callback))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._heap.clear()
            self._changed.notify()

    def _run(self) -> None:
        while (callback := self._next()) is not None:
            callback()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._stopped:
                if not self._heap:
                    self._changed.wait()
                    continue
                left = self._heap[0][0] - self._clock.now()
                if left <= 0:
                    return heapq.heappop(self._heap)[2]
                self._changed.wait(min(left / SECOND, LONGEST_SLEEP))
            return None
