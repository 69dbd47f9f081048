"""Listing a session's history, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from mango.domain.ledger import Cursor, Event
from mango.domain.principal import Principal
from mango.domain.thread import Thread
from mango.domain.times import micros
from mango.domain.wire.events import EventListQuery
from mango.services import history
from mango.services.context import Context
from mango.services.listing import PAGE_BYTES, weight
from mango.services.paging import Cursors, invalid_cursor
from mango.services.session_access import read_session


class Place(NamedTuple):
    """Where an event stands in its list: after which event of the ledger, and where in the waiting input.

    `group` is 0 for the ledger itself, 1 for interrupts, 2 for the inbox, whose numbers never change; so a cursor
    stays good when waiting input enters the ledger between two pages.
    """

    seq: int
    nth: int
    group: int = 0
    number: int = 0


def list_page(ctx: Context, principal: Principal, session_id: str, query: EventListQuery) -> dict[str, Any]:
    """A page of history. Ascending: the ledger, then what waits; descending the other way round.

    The cursor names the last event shown, so it stays good while events are appended.
    """
    reading = read_session(ctx, principal, session_id)
    cursors = Cursors("events", principal.workspace_id, parent=session_id, filters=_binding(query), order=query.order)
    start = _place(cursors.decode(query.page)) if query.page else None
    walk = _descending if query.order == "desc" else _ascending
    entries = walk(
        ctx, reading.thread, start, query.limit + 2
    )  # with the commit that the cursor points into, and one more
    found: list[Event] = []
    size, last = 0, Place(0, 0)
    for place, event in entries:
        if not _wanted(query, event):
            continue
        size += weight(event)
        if len(found) == query.limit or (found and size > PAGE_BYTES):
            return {"data": found, "next_page": cursors.encode({"place": list(last)})}
        found.append(event)
        last = place
    return {"data": found, "next_page": None}


def _place(cursor: dict[str, Any]) -> Place:
    place = cursor.get("place")
    if not isinstance(place, list) or len(place) != 4 or not all(isinstance(part, int) for part in place):
        raise invalid_cursor()
    return Place(*place)


def _binding(query: EventListQuery) -> dict[str, Any]:
    return {
        "types": sorted(query.types or []),
        "created_at": [query.created_at_gt, query.created_at_gte, query.created_at_lt, query.created_at_lte],
    }


def _wanted(query: EventListQuery, event: Event) -> bool:
    if query.types and event["type"] not in query.types:
        return False
    bounds = (query.created_at_gt, query.created_at_gte, query.created_at_lt, query.created_at_lte)
    if all(bound is None for bound in bounds):
        return True
    if event["processed_at"] is None:
        return False
    return _within(_micros(event["processed_at"]), *bounds)


def _micros(text: str) -> int:
    return micros(datetime.fromisoformat(text))


def _within(at: int, gt: int | None, gte: int | None, lt: int | None, lte: int | None) -> bool:
    return (
        (gt is None or at > gt)
        and (gte is None or at >= gte)
        and (lt is None or at < lt)
        and (lte is None or at <= lte)
    )


def _ascending(ctx: Context, thread: Thread, start: Place | None, batch: int) -> Iterator[tuple[Place, Event]]:
    # Read before the ledger: what moves meanwhile is then seen twice here and shown once, never lost.
    waiting = _waiting(ctx, thread)
    begin = Cursor(start.seq, start.nth) if start else Cursor(0, 0)
    last, entered = begin, set()
    above = max(begin.seq - 1, 0)
    for commit in history.commits(ctx.store, ctx.blobs, thread.session_id, thread.thread_id, above=above, batch=batch):
        for cursor, event in commit.entries():
            if cursor > begin:
                last = cursor
                entered.add(event["id"])
                yield Place(*cursor), event
    for group, number, event in waiting:
        if event["id"] not in entered and (start is None or (group, number) > (start.group, start.number)):
            yield Place(last.seq, last.nth, group, number), {**event, "processed_at": None}


def _descending(ctx: Context, thread: Thread, start: Place | None, batch: int) -> Iterator[tuple[Place, Event]]:
    if start is None or start.group:
        for group, number, event in reversed(_waiting(ctx, thread)):
            if start is None or (group, number) < (start.group, start.number):
                yield Place(0, 0, group, number), {**event, "processed_at": None}
    below = min(start.seq if start and not start.group else thread.head, thread.head) + 1
    for commit in history.commits(
        ctx.store, ctx.blobs, thread.session_id, thread.thread_id, below=below, descending=True, batch=batch
    ):
        for cursor, event in reversed(commit.entries()):
            if start is None or start.group or cursor < (start.seq, start.nth):
                yield Place(*cursor), event


def _waiting(ctx: Context, thread: Thread) -> list[tuple[int, int, Event]]:
    interrupts = [(1, n, event) for n, event in enumerate(thread.interrupts, 1)]
    inbox = history.inbox(ctx.store, ctx.blobs, thread)
    return interrupts + [(2, item.number + n, event) for item in inbox for n, event in enumerate(item.events)]
