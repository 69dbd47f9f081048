"""A doorbell within one process."""

from __future__ import annotations

import threading
from collections import Counter, deque

_KEPT = 1000
"""So many rings are remembered; a process may live for years."""


class MemoryDoorbell:
    """A `Doorbell` in memory. A ring that nobody waits for is kept, and ends one later wait at once.

    So a poller that reads the table and then waits cannot miss work that came between.
    """

    def __init__(self) -> None:
        self.rings: deque[tuple[str, str]] = deque(maxlen=_KEPT)
        """The latest rings, for tests: environment and work."""
        self.opened: set[str] = set()
        """Environments whose bell was made and not removed, for tests."""
        self._pending: Counter[str] = Counter()
        self._rung = threading.Condition()

    @property
    def hears(self) -> bool:
        """True: `wait` does."""
        return True

    def open(self, environment_id: str) -> None:
        """Only noted: a bell in memory needs no making."""
        with self._rung:
            self.opened.add(environment_id)

    def close(self, environment_id: str) -> None:
        """Forgets the environment."""
        with self._rung:
            self.opened.discard(environment_id)
            self._pending.pop(environment_id, None)

    def ring(self, environment_id: str, work_id: str) -> None:
        """Ends one wait, of now or later."""
        with self._rung:
            self.rings.append((environment_id, work_id))
            self._pending[environment_id] = min(self._pending[environment_id] + 1, _KEPT)
            self._rung.notify_all()

    def wait(self, environment_id: str, seconds: float) -> bool:
        """Waits in real time until the environment's bell rings."""
        with self._rung:
            if not self._rung.wait_for(lambda: self._pending[environment_id] > 0, timeout=seconds):
                return False
            self._pending[environment_id] -= 1
            return True
