"""What agents, environments and files have in common: archiving, pages, and points in time as text."""

from __future__ import annotations

from typing import Any

from mango.domain.times import rfc3339
from mango.domain.transaction import Equals, Item, Key, Update, Value
from mango.services.listing import Found
from mango.services.paging import Cursors, invalid_cursor

Json = dict[str, Any]


def archiving(key: Key, item: Item, now: int) -> Update | None:
    """The write that archives an item which is not yet; None when it is."""
    if item["archived_at"] is not None:
        return None
    return Update(key, {"archived_at": now, "updated_at": now}, conditions=(Equals("archived_at", None),))


def place_of(cursors: Cursors, page: str | None) -> str | None:
    """Where a page cursor of a newest-first list goes on."""
    if page is None:
        return None
    place = cursors.decode(page).get("place")
    if not isinstance(place, str):
        raise invalid_cursor()
    return place


def page_of(cursors: Cursors, found: Found) -> Json:
    """The answer of a list."""
    following = cursors.encode({"place": found.entries[-1].place}) if found.more else None
    return {"data": [entry.shown for entry in found.entries], "next_page": following}


def shown_time(at: Value) -> str | None:
    """RFC 3339, or None where there is no such moment."""
    return rfc3339(at) if isinstance(at, int) else None
