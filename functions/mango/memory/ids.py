"""Identifiers that repeat with their seed."""

from __future__ import annotations

import random
import string
import threading

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_URL_SAFE = _DIGITS + "-_"


class SeededIds:
    """An `Ids` whose sequence depends on the seed alone; ids sort in the order they were made."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose, for tests only
        self._count = 0
        self._lock = threading.Lock()

    def new(self, prefix: str) -> str:
        """A fresh id of the product's usual form."""
        with self._lock:
            self._count += 1
            return f"{prefix}_01{self._count:010d}{''.join(self._random.choices(_DIGITS, k=12))}"

    def secret(self) -> str:
        """Looks like a secret, and is none."""
        with self._lock:
            return "".join(self._random.choices(_URL_SAFE, k=43))
