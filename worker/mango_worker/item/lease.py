"""The lease on a work item: heartbeats that compare and set.

Each heartbeat names the one before it, so of two holders only one can go on. A heartbeat whose answer was lost is
repeated with the same value: the API then answers with the current one.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from mango_worker.errors import ApiRefused, ApiUnavailable

FIRST = "NO_HEARTBEAT"
ASSUMED_TTL = 30.0
LOST_STATUSES = frozenset({401, 403, 404, 410, 412})


class LeaseLost(Exception):
    """The work item is no longer ours: post nothing more and do not stop it."""


class LeaseLapsed(LeaseLost):
    """Nobody said that it is lost, but no heartbeat was accepted for as long as it lasts."""


class StopRequested(Exception):
    """The lease will not be extended: wind up and stop the work item."""


class Poster(Protocol):
    def post(self, path: str, *, params: dict[str, Any], timeout: float) -> Any: ...


class Lease:
    """One work item's lease. `ttl` is in seconds."""

    def __init__(self, api: Poster, work_path: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._path = f"{work_path}/heartbeat"
        self._clock = clock
        self._expected = FIRST
        self.ttl = ASSUMED_TTL
        self._good_until = clock() + ASSUMED_TTL

    @property
    def interval(self) -> float:
        """Seconds between two heartbeats."""
        return max(0.1, min(self.ttl / 2, 30.0))

    @property
    def held_once(self) -> bool:
        return self._expected != FIRST

    @property
    def remaining(self) -> float:
        """Seconds for which the lease is certain without another heartbeat; counted from when the last was sent."""
        return self._good_until - self._clock()

    def beat(self) -> None:
        """Send one heartbeat. Raises LeaseLost, StopRequested, or ApiUnavailable when a repetition makes sense."""
        sent = self._clock()
        # Not longer than an interval: a hanging request must leave time for another.
        timeout = max(0.5, min(self.interval, self.remaining, 15.0))
        try:
            answer = self._api.post(self._path, params={"expected_last_heartbeat": self._expected}, timeout=timeout)
        except ApiUnavailable:
            if self.remaining <= 0:
                raise LeaseLapsed("no heartbeat was accepted within the lease") from None
            raise
        except ApiRefused as refused:
            if refused.status in LOST_STATUSES:
                raise LeaseLost(str(refused)) from None
            raise
        self._accept(answer, sent)

    def _accept(self, answer: Any, sent: float) -> None:
        if not isinstance(answer, dict) or not isinstance(answer.get("last_heartbeat"), str):
            raise ApiUnavailable("the heartbeat's answer holds no last_heartbeat")
        state = answer.get("state")
        if answer.get("lease_extended") is False or state in ("stopping", "stopped"):
            raise StopRequested(f"the work item is {state}")
        self._expected = answer["last_heartbeat"]
        ttl = answer.get("ttl_seconds")
        if isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl > 0:
            self.ttl = float(ttl)
        self._good_until = sent + self.ttl


def acquire(lease: Lease, pause: Callable[[float], object] = time.sleep) -> None:
    """The first heartbeat, repeated while the API does not answer. Raises as `Lease.beat`, the last time too."""
    delay = 0.25
    while True:
        try:
            lease.beat()
            return
        except ApiUnavailable as trouble:
            if lease.remaining <= delay:
                raise
            pause(min(max(delay, trouble.retry_after), lease.remaining))
            delay = min(delay * 2, 4.0)


def keep(lease: Lease, over: threading.Event, report: Callable[[Exception], None]) -> None:
    """Heartbeat until `over` is set or the lease ends; the end is reported once, as the exception that tells why."""
    pause = lease.interval
    while not over.wait(pause):
        try:
            lease.beat()
            pause = lease.interval
        except ApiUnavailable:
            # Sooner than usual, and once more just before the lease would be uncertain.
            pause = max(0.1, min(lease.interval, 1.0, lease.remaining))
        except (LeaseLost, StopRequested, ApiRefused) as end:
            report(end)
            return
