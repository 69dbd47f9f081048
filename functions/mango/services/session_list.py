"""Listing sessions, in both directions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mango.domain import keys
from mango.domain.principal import Principal
from mango.domain.thread import read_thread
from mango.domain.transaction import Item, Key
from mango.domain.wire.sessions import SessionListQuery
from mango.services.context import Context
from mango.services.listing import Window, newest_shown
from mango.services.paging import Cursors, invalid_cursor
from mango.services.session_access import primary_thread_id
from mango.services.sessions import view
from mango.services.spill import unpack

Json = dict[str, Any]

_GROUP = 20
"""Sessions that are read at once; their threads and agents have at most 4 MB."""


def list_page(ctx: Context, principal: Principal, query: SessionListQuery) -> Json:
    """Sessions of the workspace by time of creation; a cursor names the session at the edge of its page."""
    cursors = Cursors("sessions", principal.workspace_id, filters=_binding(query), order=query.order)
    place, back = _position(cursors.decode(query.page)) if query.page else (None, False)
    found = newest_shown(
        ctx,
        keys.listing(principal.workspace_id, "session"),
        lambda metas: _views(ctx, query, metas),
        query.limit,
        Window(beyond=place),
        ascending=(query.order == "asc") is not back,
    )
    entries = found.entries[::-1] if back else found.entries
    earlier, later = (found.more, bool(entries)) if back else (place is not None and bool(entries), found.more)
    return {
        "data": [entry.shown for entry in entries],
        "prev_page": cursors.encode({"place": entries[0].place, "back": True}) if earlier else None,
        "next_page": cursors.encode({"place": entries[-1].place, "back": False}) if later else None,
    }


def _position(position: Json) -> tuple[str, bool]:
    place, back = position.get("place"), position.get("back")
    if not isinstance(place, str) or not isinstance(back, bool):
        raise invalid_cursor()
    return place, back


def _binding(query: SessionListQuery) -> Json:
    """What a cursor is bound to: the bounds of time; other filters may change between pages (wire contract, 5.1)."""
    return {"created_at": [query.created_at_gt, query.created_at_gte, query.created_at_lt, query.created_at_lte]}


def _wanted(query: SessionListQuery, meta: Item) -> bool:
    at = meta["created_at"]
    assert isinstance(at, int)
    return not meta.get("deleted_at") and all(
        (
            query.include_archived or not meta["archived_at"],
            query.agent_id in (None, meta["agent_id"]),
            query.agent_version in (None, meta["agent_version"]),
            not query.statuses or meta["status"] in query.statuses,
            # No session has a deployment or a memory store yet.
            query.deployment_id is None and query.memory_store_id is None,
            query.created_at_gt is None or at > query.created_at_gt,
            query.created_at_gte is None or at >= query.created_at_gte,
            query.created_at_lt is None or at < query.created_at_lt,
            query.created_at_lte is None or at <= query.created_at_lte,
        )
    )


def _views(ctx: Context, query: SessionListQuery, metas: list[Item]) -> Iterator[Json | None]:
    """One for each; what a page has no room for is not read from blobs, and at most a group too many from the table."""
    for start in range(0, len(metas), _GROUP):
        group = metas[start : start + _GROUP]
        wanted = [meta for meta in group if _wanted(query, meta)]
        shown = dict(zip((str(meta["id"]) for meta in wanted), _parts(ctx, wanted), strict=True))
        for meta in group:
            thread, body = shown.get(str(meta["id"]), (None, None))
            if thread is None or body is None:  # not wanted, or just being deleted
                yield None
            else:
                yield view(ctx, meta, read_thread(thread), json.loads(unpack(ctx.blobs, "body", body)))


def _parts(ctx: Context, metas: list[Item]) -> list[tuple[Item | None, Item | None]]:
    """The thread and the agent of each."""
    keys_of: list[Key] = []
    for meta in metas:
        session_id = str(meta["id"])
        keys_of += [keys.thread(session_id, primary_thread_id(session_id)), keys.snapshot(session_id)]
    parts = ctx.store.get_many(keys_of) if keys_of else []
    return list(zip(parts[::2], parts[1::2], strict=True))
