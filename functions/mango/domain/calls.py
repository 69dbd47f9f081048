"""The barrier: the tool calls that a parked thread waits for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from mango.domain.errors import InvalidRequest
from mango.domain.ledger import dump_json
from mango.domain.transaction import Item

WORKER, CUSTOM = "worker", "custom"
"""Who answers a call: an environment worker (`user.tool_result`) or the application (`user.custom_tool_result`)."""


@dataclass(frozen=True, slots=True)
class Call:
    """One open or answered call.

    Attributes:
        id: id of its `agent.*_tool_use` event.
        kind: `WORKER` or `CUSTOM`.
        approved: False while a confirmation is missing.
        answered: a result is in the ledger.
    """

    id: str
    kind: str
    approved: bool = True
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Barrier:
    """`S#<session>` / `BA#<thread>`: the calls of one answer, in the model's order."""

    calls: tuple[Call, ...]

    @property
    def open_calls(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if not call.answered)

    @property
    def complete(self) -> bool:
        return not self.open_calls

    def open_call(self, call_id: str, path: str) -> Call:
        """The open call with this id.

        Raises:
            InvalidRequest: it is not a call of this barrier, or already has its result.
        """
        call = next((call for call in self.calls if call.id == call_id), None)
        if call is None:
            raise InvalidRequest(f"{call_id!r} is not a tool call that awaits an answer", path=path)
        if call.answered:
            raise InvalidRequest(f"tool call {call_id!r} already has its result", path=path)
        return call

    def answer(self, call_id: str) -> Barrier:
        return self._with(call_id, answered=True)

    def approve(self, call_id: str) -> Barrier:
        return self._with(call_id, approved=True)

    def _with(self, call_id: str, **changes: bool) -> Barrier:
        return Barrier(tuple(replace(c, **changes) if c.id == call_id else c for c in self.calls))  # type: ignore[arg-type]

    def item(self) -> Item:
        return {"calls": dump_json([asdict(call) for call in self.calls])}


def read_barrier(item: Item) -> Barrier:
    """The inverse of `Barrier.item`."""
    return Barrier(tuple(Call(**call) for call in json.loads(str(item["calls"]))))
