"""Ending a process: the first signal ends it in good order, the second at once."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

log = logging.getLogger("mango")

FORCED = 130


class Stopping:
    """Takes SIGINT and SIGTERM of the process."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        self._actions: list[Callable[[], None]] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)

    def on_stop(self, action: Callable[[], None]) -> None:
        """Called in the main thread at the first signal. Must be short and must not take locks."""
        self._actions.append(action)
        if self.requested.is_set():
            action()

    def wait(self) -> None:
        """Blocks the main thread until a signal has come."""
        while not self.requested.wait(3600):
            pass

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self.requested.is_set():
            # The store's guard sees our end and takes the store along; nothing acknowledged can be lost.
            os.write(2, b"stopped at once\n")
            os._exit(FORCED)
        os.write(2, b"\nstopping; once more to stop at once\n")
        self.requested.set()
        for action in self._actions:
            action()


def leave(code: int) -> NoReturn:
    """Ends the process now. Threads that still wait for a model or a store would hold up an ordinary exit."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
