"""An orchestrator that runs nothing."""

from __future__ import annotations

import threading
from typing import NamedTuple


class Start(NamedTuple):
    """A start of execution `<thread>-<wake>`."""

    session_id: str
    thread_id: str
    wake: int


class RecordingOrchestrator:
    """An `Orchestrator` that remembers what it was asked to start; a simulator takes the starts and runs them."""

    def __init__(self) -> None:
        self.calls: list[Start] = []
        """Every call, doubles included."""
        self._known: set[Start] = set()
        self._waiting: list[Start] = []
        self._lock = threading.Lock()

    def start(self, session_id: str, thread_id: str, wake: int) -> None:
        """Remembers the start; one that already exists only appears in `calls`."""
        start = Start(session_id, thread_id, wake)
        with self._lock:
            self.calls.append(start)
            if start not in self._known:
                self._known.add(start)
                self._waiting.append(start)

    def take(self) -> list[Start]:
        """The starts since the last call, oldest first, each once."""
        with self._lock:
            taken, self._waiting = self._waiting, []
            return taken
