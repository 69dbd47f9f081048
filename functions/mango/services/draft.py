"""A change to one thread in the making: what it becomes, what its ledger gains, and the writes that do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mango.domain import keys
from mango.domain.calls import Barrier
from mango.domain.ledger import Commit, Event
from mango.domain.thread import Gate, Status, Thread
from mango.domain.transaction import Delete, Item, Put, Update, Write
from mango.ports import Blobs, Ids, ModelUsage
from mango.services import outgoing
from mango.services.spill import INLINE_BYTES, pack

COMMIT_BYTES = 3 * INLINE_BYTES
"""Largest event list that stays in its ledger item (docs/architecture.md, section 4)."""


class Draft:
    """Collects one transaction's change of a thread. Methods apply at once to `thread`; `writes` gives the data."""

    def __init__(self, thread: Thread, barrier: Barrier | None, now: int, ids: Ids) -> None:
        self.before = thread
        self.thread = thread
        self.barrier = barrier
        self.now = now
        self.ids = ids
        self.events: list[Event] = []
        self.extra: list[Write] = []
        self._barrier_write: str = ""

    def set(self, **changes: Any) -> None:
        self.thread = replace(self.thread, **changes)

    def append(self, *events: Event) -> None:
        self.events.extend(events)

    def status(self, status: Status) -> None:
        """Moves the thread to a status and keeps its running time."""
        if self.thread.status is status:
            return
        if status is Status.RUNNING:
            self.set(running_since=self.now)
        elif self.thread.running_since:
            self.set(active=self.thread.active_micros(self.now), running_since=0)
        self.set(status=status)

    def run(self) -> None:
        """Status running, with its events when it was not."""
        if self.thread.status is not Status.RUNNING:
            self.append(*outgoing.running(self.ids, self.thread))
            self.status(Status.RUNNING)

    def rest(self, stop_reason: Event, stop_details: Event | None = None) -> None:
        """Status idle, with its events."""
        self.status(Status.IDLE)
        self.append(*outgoing.idle(self.ids, self.thread, self.now, stop_reason, stop_details))

    def open_barrier(self, barrier: Barrier) -> None:
        self.barrier, self._barrier_write = barrier, "put"
        self.set(gate=Gate.OPEN, bver=self.thread.bver + 1)

    def change_barrier(self, barrier: Barrier) -> None:
        """Some of its calls were approved or answered."""
        self.barrier = barrier
        self._barrier_write = self._barrier_write or "change"
        self.set(gate=Gate.COMPLETE if barrier.complete else Gate.OPEN, bver=self.thread.bver + 1)

    def drop_barrier(self) -> None:
        self.barrier, self._barrier_write = None, "delete"
        self.set(gate=Gate.NONE, bver=self.thread.bver + 1)

    def close_span(self) -> None:
        """Ends a model request that nobody ended (its round was lost)."""
        if self.thread.span:
            self.append(outgoing.span_end(self.ids, self.thread.span, ModelUsage(), is_error=True))
            self.set(span="")

    def writes(
        self, blobs: Blobs, conditions: Sequence[str], commit_id: str, next_: str = "", generation: int = 0
    ) -> tuple[Write, ...]:
        """The transaction's writes: thread first, conditional on these fields as read; then ledger, barrier, META."""
        if self.events:
            self.set(head=self.before.head + 1)
        self.set(updated_at=self.now)
        before, after = self.before, self.thread
        update = Update(
            before.key,
            set=before.changes_to(after),
            remove=before.removals_to(after),
            conditions=before.as_read("closed", *conditions),
        )
        return (
            update,
            *self._ledger(blobs, commit_id, next_, generation),
            *self._barrier(),
            *self._meta(),
            *self.extra,
        )

    def _ledger(self, blobs: Blobs, commit_id: str, next_: str, generation: int) -> list[Write]:
        if not self.events:
            return []
        thread = self.thread
        commit = Commit(thread.head, commit_id, self.now, tuple(self.events), next_, generation)
        key = keys.ledger(thread.session_id, thread.thread_id, thread.head)
        return [Put(key, commit_item(blobs, thread, commit))]

    def _barrier(self) -> list[Write]:
        key = keys.barrier(self.thread.session_id, self.thread.thread_id)
        if self._barrier_write == "put" and self.barrier:
            return [Put(key, self.barrier.item(), new=False)]
        if self._barrier_write == "change" and self.barrier:
            return [Update(key, set=self.barrier.item())]
        return [Delete(key, must_exist=False)] if self._barrier_write == "delete" else []

    def _meta(self) -> list[Write]:
        if self.thread.status is self.before.status:
            return []
        status: Item = {"status": str(self.thread.status), "updated_at": self.now}
        return [Update(keys.meta(self.thread.session_id), set=status)]


def commit_item(blobs: Blobs, thread: Thread, commit: Commit) -> Item:
    """The ledger item, its events in a blob when they are many bytes."""
    item = commit.item()
    text = str(item["events"])
    if len(text.encode()) <= COMMIT_BYTES:
        return item
    blob_key = f"{thread.workspace_id}/{thread.session_id}/events/{thread.thread_id}/{commit.seq}-{commit.id}"
    return {**item, **pack(blobs, "events", text, blob_key)}
