"""The doorbell of the embedded profile: waiting in this process, ringing for those that wait at SQS too."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mango.ports import Doorbell


class _Bell:
    def __init__(self) -> None:
        self.waiting = 0
        self.rings = 0
        self.event = threading.Condition()


class LocalDoorbell:
    """A `Doorbell` that wakes everybody in this process who waits for the environment.

    Args:
        outside: rung too, for workers that wait at a queue; None for none.
        recheck: after so many seconds `wait` ends as if it had rung, since work may have been made claimable by
            another process, or between the caller's look at the table and its wait.
    """

    def __init__(self, outside: Doorbell | None, *, recheck: float = 0.25) -> None:
        self._outside = outside
        self._recheck = recheck
        self._bells: dict[str, _Bell] = {}
        self._lock = threading.Lock()

    @property
    def hears(self) -> bool:
        """True: `wait` waits."""
        return True

    def open(self, environment_id: str) -> None:
        """Nothing is needed in this process; makes the bell outside."""
        if self._outside is not None:
            self._outside.open(environment_id)

    def close(self, environment_id: str) -> None:
        """Removes the bell outside; who waits here finds nothing and goes."""
        if self._outside is not None:
            self._outside.close(environment_id)

    def ring(self, environment_id: str, work_id: str) -> None:
        """Wakes the waiters. Does not raise."""
        with self._lock:
            bell = self._bells.get(environment_id)
        if bell is not None:
            with bell.event:
                bell.rings += 1
                bell.event.notify_all()
        if self._outside is not None:
            self._outside.ring(environment_id, work_id)

    def wait(self, environment_id: str, seconds: float) -> bool:
        """Waits for the bell, at most so long; True when it rang or it is time to look again anyway."""
        until = time.monotonic() + min(seconds, self._recheck)
        with self._bell(environment_id) as bell, bell.event:
            heard = bell.rings
            rang = bell.event.wait_for(lambda: bell.rings != heard, max(until - time.monotonic(), 0))
        return rang or seconds > self._recheck

    @contextmanager
    def _bell(self, environment_id: str) -> Iterator[_Bell]:
        """The bell while somebody waits for it; kept no longer, for there may be many environments."""
        with self._lock:
            bell = self._bells.setdefault(environment_id, _Bell())
            bell.waiting += 1
        try:
            yield bell
        finally:
            with self._lock:
                bell.waiting -= 1
                if not bell.waiting:
                    del self._bells[environment_id]
