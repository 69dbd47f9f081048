"""The thread that looks at the `due` index again and again, so that whatever is owed happens."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable

log = logging.getLogger("mango.sweeper")


class Sweeper:
    """Calls `sweep` every `period` seconds, give or take a fifth. A pass that fails is reported and repeated."""

    def __init__(self, sweep: Callable[[], object], period: float = 0.5) -> None:
        self._sweep = sweep
        self._period = period
        self._stopping = threading.Event()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float = 2.0) -> None:
        """Ends after the pass under way, which is left behind if it takes longer than that."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopping.wait(self._period * random.uniform(0.8, 1.2)):  # noqa: S311 (jitter, no secret)
            try:
                self._sweep()
            except Exception as error:  # the sweeper is what everything else relies on: it must go on
                self._report(error)
            else:
                self._recovered()

    def _report(self, error: Exception) -> None:
        self._failures += 1
        if self._failures == 1 and not self._stopping.is_set():
            log.error("a sweep failed; it is repeated every %g s", self._period, exc_info=error)

    def _recovered(self) -> None:
        if self._failures:
            log.info("sweeps work again after %d failures", self._failures)
            self._failures = 0
