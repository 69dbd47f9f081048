"""Reading a thread's history: the ledger in order, then what still waits in the inbox."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from mango.domain import keys
from mango.domain.ledger import Commit, Event, read_commit
from mango.domain.thread import Thread
from mango.domain.transaction import Item, Key
from mango.ports import Blobs, Store
from mango.services.spill import inline, unpack

PAGE = 200
"""Ledger items a read fetches at most."""


def decode_commit(blobs: Blobs, item: Item) -> Commit:
    """A ledger item as a commit, its events fetched when they are in a blob."""
    return read_commit(inline(blobs, "events", item))


class Waiting(NamedTuple):
    """An inbox item: inputs that wait, the first of them with this number."""

    key: Key
    number: int
    events: list[Event]


def decode_inputs(blobs: Blobs, key: Key, item: Item) -> Waiting:
    return Waiting(key, int(key.sk.rpartition("#")[2]), json.loads(unpack(blobs, "events", item)))


def commit_at(store: Store, blobs: Blobs, session_id: str, thread_id: str, seq: int) -> Commit | None:
    item = store.get(keys.ledger(session_id, thread_id, seq))
    return decode_commit(blobs, item) if item else None


def commits(
    store: Store,
    blobs: Blobs,
    session_id: str,
    thread_id: str,
    *,
    above: int = 0,
    below: int | None = None,
    descending: bool = False,
    batch: int = PAGE,
) -> Iterator[Commit]:
    """Commits with a seq greater than `above` and less than `below`, lazily, `batch` of them in the first read."""
    partition, prefix = keys.session_partition(session_id), keys.ledger_prefix(thread_id)
    after = keys.ledger(session_id, thread_id, above).sk if above else None
    before = None if below is None else keys.ledger(session_id, thread_id, below).sk
    while True:
        limit = min(batch, PAGE)
        page = store.query(partition, prefix=prefix, after=after, before=before, limit=limit, descending=descending)
        for _, item in page.items:
            yield decode_commit(blobs, item)
        if page.next is None:
            return
        after, before = (after, page.next) if descending else (page.next, before)
        batch *= 2  # whoever reads on will have much to skip


def waiting(store: Store, blobs: Blobs, thread: Thread) -> list[Event]:
    """Accepted input that is not in the ledger yet: interrupts, which jump the queue, then the inbox in order."""
    return [*thread.interrupts, *(event for item in inbox(store, blobs, thread) for event in item.events)]


def inbox(store: Store, blobs: Blobs, thread: Thread, limit: int | None = None) -> list[Waiting]:
    """The oldest items of the inbox, at most `limit`."""
    if not thread.waiting:
        return []
    after: str | None = None
    found: list[Waiting] = []
    while limit is None or len(found) < limit:
        page = store.query(
            keys.session_partition(thread.session_id),
            prefix=keys.inbox_prefix(thread.thread_id),
            after=after,
            limit=None if limit is None else limit - len(found),
        )
        found += [decode_inputs(blobs, key, item) for key, item in page.items]
        after = page.next
        if after is None:
            break
    return found
