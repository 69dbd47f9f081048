"""Admission: how input enters a session. One request is one transaction; what it does is decided on a draft.

The rules are `admit_*` and `wake_up` of design/model/thread_protocol.py (docs/architecture.md, section 4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mango.domain import keys
from mango.domain.calls import CUSTOM, WORKER, Barrier
from mango.domain.errors import InvalidRequest
from mango.domain.ledger import Event, dump_json
from mango.domain.thread import START_GRACE, Gate, Status, Thread
from mango.domain.transaction import Item, Put
from mango.ports import Blobs
from mango.services import outgoing
from mango.services.draft import Draft
from mango.services.spill import pack

READ_FIELDS = (
    "status",
    "head",
    "tail",
    "taken",
    "wake",
    "gen",
    "holder",
    "lease",
    "retry_at",
    "hold",
    "bver",
)
"""What the decision rests on, so what the transaction is conditional on."""

INBOX_ITEMS = 80
"""Items that one request may add to the inbox, so that its transaction stays within 100."""
BATCH_BYTES = 3 * 1024 * 1024
"""What they may take of the transaction's 4 MB."""
INTERRUPTED = "The user interrupted before this call had a result. It may have run in part, or not at all."
DENIED = "The user denied this tool call."


class Admission:
    """Admits the events of one request to the thread of a draft."""

    def __init__(self, draft: Draft, blobs: Blobs) -> None:
        self.draft = draft
        self._blobs = blobs
        self._straight: set[str] = set()
        self._waiting: list[Event] = []
        self.needs_worker = False
        """Whether a call was approved that only a worker can run."""

    def admit(self, events: list[Event]) -> bool:
        """Admits all events, in order; True when an execution is owed.

        Raises:
            InvalidRequest: one of them cannot be admitted; the draft is then of no use.
        """
        for n, event in enumerate(events):
            self._one(event, f"events.{n}")
        self._fill_inbox()
        return self._wake_up()

    def in_ledger(self, event_id: str) -> bool:
        """Whether the event entered the ledger at once (else it waits and has no `processed_at` yet)."""
        return event_id in self._straight

    def _one(self, event: Event, path: str) -> None:
        kind = event["type"]
        if kind == "user.message":
            self._message(event)
        elif kind == "user.interrupt":
            self._interrupt(event)
        elif kind == "user.tool_confirmation":
            self._confirmation(event, path)
        elif kind == "user.tool_result":
            self._result(event, WORKER, event["tool_use_id"], f"{path}.tool_use_id")
        elif kind == "user.custom_tool_result":
            self._result(event, CUSTOM, event["custom_tool_use_id"], f"{path}.custom_tool_use_id")
        else:
            raise InvalidRequest(f"{kind!r} cannot be sent", path=f"{path}.type")

    def _append(self, event: Event) -> None:
        self._straight.add(event["id"])
        self.draft.append(event)

    def _message(self, event: Event) -> None:
        draft, thread = self.draft, self.draft.thread
        if thread.status is Status.IDLE and thread.gate is Gate.NONE and not thread.waiting:
            self._append(event)
            draft.run()
            draft.set(owes=True, attempts=0)
            return
        self._waiting.append(event)
        draft.set(tail=thread.tail + 1, hold=False)

    def _fill_inbox(self) -> None:
        """Writes what waits: an item an input, or a few in one where they are many for a transaction."""
        if not self._waiting:
            return
        thread = self.draft.thread
        first = thread.tail - len(self._waiting) + 1
        share = -(-len(self._waiting) // INBOX_ITEMS)
        for start in range(0, len(self._waiting), share):
            inputs = self._waiting[start : start + share]
            item = inbox_item(self._blobs, thread, inputs, BATCH_BYTES // INBOX_ITEMS)
            key = keys.inbox(thread.session_id, thread.thread_id, first + start)
            self.draft.extra.append(Put(key, item))

    def _interrupt(self, event: Event) -> None:
        draft, thread = self.draft, self.draft.thread
        if thread.gate is Gate.OPEN and draft.barrier:
            self._append(event)
            self._close(draft.barrier)
            draft.rest(outgoing.end_turn())
        elif thread.status is Status.IDLE:
            self._append(event)
        else:
            draft.thread = thread.with_interrupt(event)

    def _close(self, barrier: Barrier) -> None:
        for call in barrier.open_calls:
            self.draft.append(outgoing.closing_result(self.draft.ids, call.kind, call.id, INTERRUPTED))
        self.draft.drop_barrier()

    def _result(self, event: Event, kind: str, call_id: str, path: str) -> None:
        call = self._barrier(call_id, path).open_call(call_id, path)
        if call.kind != kind:
            wanted = "user.tool_result" if call.kind == WORKER else "user.custom_tool_result"
            raise InvalidRequest(f"{call_id!r} is answered by a {wanted} event", path=path)
        if not call.approved:
            raise InvalidRequest(f"{call_id!r} awaits a user.tool_confirmation first", path=path)
        self._append(event)
        self._answered(call_id)

    def _confirmation(self, event: Event, path: str) -> None:
        call_id, path = event["tool_use_id"], f"{path}.tool_use_id"
        call = self._barrier(call_id, path).open_call(call_id, path)
        if call.approved:
            raise InvalidRequest(f"{call_id!r} does not await a confirmation", path=path)
        self._append(event)
        if event["result"] == "allow":
            self.draft.change_barrier(self._barrier(call_id, path).approve(call_id))
            self.needs_worker = self.needs_worker or call.kind == WORKER
            return
        reason = event.get("deny_message")
        text = f"{DENIED} {reason}" if reason else DENIED
        self.draft.append(outgoing.refused_result(self.draft.ids, call_id, text))
        self._answered(call_id)

    def _barrier(self, call_id: str, path: str) -> Barrier:
        if self.draft.barrier is None:
            raise InvalidRequest(f"{call_id!r} is not a tool call that awaits an answer", path=path)
        return self.draft.barrier

    def _answered(self, call_id: str) -> None:
        draft = self.draft
        assert draft.barrier is not None
        draft.change_barrier(draft.barrier.answer(call_id))
        if draft.barrier.complete:
            draft.run()

    def _wake_up(self) -> bool:
        """Raises wake for news and owes a start. Under a live lease the runner finds the news by the raised wake."""
        draft, thread = self.draft, self.draft.thread
        if thread.live(draft.now):
            draft.set(wake=thread.wake + 1)
            return False
        if not thread.runnable(draft.now):
            return False
        if thread.status is Status.IDLE:
            draft.run()
        draft.thread = replace(draft.thread, wake=thread.wake + 1).due_in(draft.now, START_GRACE)
        return True


def inbox_item(blobs: Blobs, thread: Thread, inputs: list[Event], inline_bytes: int) -> Item:
    """Inputs that wait, in order; the item's key has the number of the first."""
    blob_key = f"{thread.workspace_id}/{thread.session_id}/inbox/{inputs[0]['id']}"
    return pack(blobs, "events", dump_json(inputs), blob_key, inline_bytes=inline_bytes)


def echo(event: Event, processed_at: str | None) -> dict[str, Any]:
    """A sent event as the answer shows it."""
    return {**event, "processed_at": processed_at}
