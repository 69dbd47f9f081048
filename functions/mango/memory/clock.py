"""A clock that stands still until it is moved."""

from __future__ import annotations

import threading

from mango.domain.times import SECOND
from mango.ports import Micros

DEFAULT_START: Micros = 1_790_000_000 * SECOND
"""A moment in September 2026."""


class ManualClock:
    """A `Clock` for tests and simulators."""

    def __init__(self, start: Micros = DEFAULT_START) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> Micros:
        """The moment it was last moved to."""
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> Micros:
        """Moves it on and returns the new time."""
        with self._lock:
            self._now += round(seconds * SECOND)
            return self._now

    def set(self, moment: Micros) -> None:
        """Moves it to a moment, also backwards, as real clocks do."""
        with self._lock:
            self._now = moment
