"""The ledger: a thread's history as an immutable item per commit, and the cursors that point into it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from mango.domain.times import rfc3339
from mango.domain.transaction import Item

Event = dict[str, Any]
"""A public event in wire form, without `processed_at`, which its commit gives it."""


class Cursor(NamedTuple):
    """A place in a thread's history: after event `nth` of commit `seq`. `Cursor(0, 0)` is before everything."""

    seq: int
    nth: int

    def text(self) -> str:
        """What clients see as the SSE `id:`."""
        return f"{self.seq}.{self.nth}"

    @staticmethod
    def parse(text: str) -> Cursor | None:
        """None when it is not a cursor."""
        seq, dot, nth = text.partition(".")
        if not (dot and seq.isdecimal() and nth.isdecimal() and len(text) <= 32):
            return None
        return Cursor(int(seq), int(nth))


@dataclass(frozen=True, slots=True)
class Commit:
    """One ledger item.

    Attributes:
        seq: dense position in the thread's ledger, from 1.
        id: the commit id stamped by its writer; a writer whose answer was lost looks for it.
        at: when it was committed, in microseconds; the `processed_at` of all its events.
        events: what it appended, in order.
        next: what the round that wrote it answers next (`""` when no round wrote it).
        generation: the runner generation that wrote it; 0 when no round did.
    """

    seq: int
    id: str
    at: int
    events: tuple[Event, ...]
    next: str = ""
    generation: int = 0

    def public(self) -> list[Event]:
        """The events as clients see them."""
        processed_at = rfc3339(self.at)
        return [{**event, "processed_at": processed_at} for event in self.events]

    def entries(self) -> list[tuple[Cursor, Event]]:
        """The public events, each with the cursor that points behind it."""
        return [(Cursor(self.seq, n + 1), event) for n, event in enumerate(self.public())]

    def item(self) -> Item:
        return {
            "seq": self.seq,
            "commit": self.id,
            "at": self.at,
            "events": dump_json(list(self.events)),
            "next": self.next,
            "gen": self.generation,
        }


def read_commit(item: Item) -> Commit:
    """The inverse of `Commit.item`."""
    return Commit(
        seq=_int(item["seq"]),
        id=str(item["commit"]),
        at=_int(item["at"]),
        events=tuple(json.loads(str(item["events"]))),
        next=str(item["next"]),
        generation=_int(item["gen"]),
    )


def dump_json(value: Any) -> str:
    """Compact JSON text; not ASCII-escaped, so that sizes are what they seem."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _int(value: Any) -> int:
    assert isinstance(value, int)
    return value
