"""The reads a stream makes: pages of the ledger, and a look at where the thread stands."""

from __future__ import annotations

from typing import NamedTuple

from mango.domain import keys
from mango.domain.transaction import Item
from mango.ports import Blobs, Store
from mango.services.history import decode_commit
from mango.stream.frames import Frame, commit_frames

PAGE = 50
"""Ledger items a read fetches at most."""


class Look(NamedTuple):
    """Where a thread stands.

    Attributes:
        head: seq of its last commit.
        running: whether commits are to be expected.
        deleted: whether the session is gone or on its way out.
    """

    head: int
    running: bool
    deleted: bool


class CommitFrames(NamedTuple):
    """A commit, ready to be sent."""

    seq: int
    frames: list[Frame]


def look(store: Store, session_id: str, thread_id: str) -> Look:
    """One small read."""
    meta, thread = store.get_many([keys.meta(session_id), keys.thread(session_id, thread_id)])
    return looked(meta, thread)


def looked(meta: Item | None, thread: Item | None) -> Look:
    """What the two items say."""
    if meta is None or thread is None or meta.get("deleted_at"):
        return Look(0, running=False, deleted=True)
    head = thread["head"]
    assert isinstance(head, int)
    return Look(head, running=thread["status"] in ("running", "rescheduling"), deleted=False)


def read_page(store: Store, blobs: Blobs, session_id: str, thread_id: str, above: int) -> list[CommitFrames]:
    """The next commits with a seq greater than `above`; empty at the head."""
    prefix = keys.ledger_prefix(thread_id)
    after = keys.ledger(session_id, thread_id, above).sk if above else None
    page = store.query(keys.session_partition(session_id), prefix=prefix, after=after, limit=PAGE)
    return [decode(blobs, item) for _, item in page.items]


def decode(blobs: Blobs, item: Item) -> CommitFrames:
    """A ledger item as frames. The one place that knows how an item holds its events."""
    commit = decode_commit(blobs, item)
    return CommitFrames(commit.seq, commit_frames(commit))
