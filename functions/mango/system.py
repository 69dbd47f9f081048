"""The machine's own clock and source of identifiers."""

from __future__ import annotations

import secrets
import string
import threading
import time

from mango.ports import Clock, Micros

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
"""Base 62 in ASCII order, so that texts of equal length sort like their numbers."""
_TIME_LENGTH = 9
_RANDOM_LENGTH = 13


class SystemClock:
    """The wall clock."""

    def now(self) -> Micros:
        """Microseconds since the epoch."""
        return time.time_ns() // 1000


class SystemIds:
    """Ids ordered by time: `01`, nine digits of the microsecond, thirteen random ones (77 bits)."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._last = 0
        self._lock = threading.Lock()

    def new(self, prefix: str) -> str:
        """A fresh id; ids of one process are in strict order, even when the clock stands or steps back."""
        with self._lock:
            self._last = moment = max(self._clock.now(), self._last + 1)
        random = "".join(secrets.choice(_DIGITS) for _ in range(_RANDOM_LENGTH))
        return f"{prefix}_01{_base62(moment)}{random}"

    def secret(self) -> str:
        """256 random bits."""
        return secrets.token_urlsafe(32)


def moment_of(id_: str) -> Micros | None:
    """When `SystemIds` made an id; None for an id of another source."""
    body = id_.rpartition("_")[2]
    if len(body) != 2 + _TIME_LENGTH + _RANDOM_LENGTH or not body.startswith("01"):
        return None
    moment = 0
    for digit in body[2 : 2 + _TIME_LENGTH]:
        value = _DIGITS.find(digit)
        if value < 0:
            return None
        moment = moment * len(_DIGITS) + value
    return moment


def _base62(number: int) -> str:
    digits = []
    for _ in range(_TIME_LENGTH):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
