"""What can befall a commit, for simulators and tests."""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from mango.domain.transaction import Transaction


class Fault(Enum):
    """The fate of one commit."""

    NONE = auto()
    """It is answered as it should be."""
    UNAVAILABLE = auto()
    """`StoreUnavailable`; nothing is written."""
    ANSWER_LOST = auto()
    """Applied (if its conditions hold), then `Ambiguous`."""
    LATE = auto()
    """`Ambiguous`; tried only when `MemoryStore.deliver_late` is called."""
    NEVER = auto()
    """`Ambiguous`; never applied."""


class Faults(Protocol):
    """Decides the fate of commits. Called once per commit, outside the store's lock, after its form was checked."""

    def decide(self, transaction: Transaction) -> Fault: ...
