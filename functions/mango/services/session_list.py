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
from mango.services.paging import Cursors
from mango.services.session_access import primary_thread_id
from mango.services.sessions import view
from mango.services.spill import unpack

Json = dict[str, Any]
BATCH = 100
"""Index entries read at a time."""


def list_page(ctx: Context, principal: Principal, query: SessionListQuery) -> Json:
    """Sessions of the workspace by time of creation; a cursor names the session at the edge of its page."""
    cursors = Cursors("sessions", principal.workspace_id, filters=_binding(query), order=query.order)
    position = cursors.decode(query.page) if query.page else {}
    back = bool(position.get("back"))
    edge: str | None = position.get("edge")
    descending = (query.order == "desc") is not back
    found: list[tuple[str, Item]] = []
    more = False
    for place, meta in _metas(ctx, principal.workspace_id, descending, edge):
        if not _wanted(query, meta):
            continue
        if len(found) == query.limit:
            more = True
            break
        found.append((place, meta))
    if back:
        found.reverse()
    before, after = (more, bool(found)) if back else (edge is not None and bool(found), more)
    return {
        "data": _views(ctx, [meta for _, meta in found]),
        "prev_page": cursors.encode({"edge": found[0][0], "back": True}) if before else None,
        "next_page": cursors.encode({"edge": found[-1][0], "back": False}) if after else None,
    }


def _binding(query: SessionListQuery) -> Json:
    """What a cursor is bound to: the bounds of time; other filters may change between pages (wire contract, 5.1)."""
    return {"created_at": [query.created_at_gt, query.created_at_gte, query.created_at_lt, query.created_at_lte]}


def _metas(ctx: Context, workspace_id: str, descending: bool, edge: str | None) -> Iterator[tuple[str, Item]]:
    partition, start = keys.listing(workspace_id, "session"), None
    bounds: dict[str, str | None] = {"at_most": edge} if descending else {"above": edge}
    while True:
        page = ctx.store.query_index("by_list", partition, limit=BATCH, descending=descending, start=start, **bounds)
        entries = [(str(item["listed_at"]), key) for key, item in page.items if item["listed_at"] != edge]
        metas = ctx.store.get_many([key for _, key in entries])
        yield from ((place, meta) for (place, _), meta in zip(entries, metas, strict=True) if meta)
        start = page.next
        if start is None:
            return


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


def _views(ctx: Context, metas: list[Item]) -> list[Json]:
    wanted: list[Key] = []
    for meta in metas:
        session_id = str(meta["id"])
        wanted += [keys.thread(session_id, primary_thread_id(session_id)), keys.snapshot(session_id)]
    parts = ctx.store.get_many(wanted)
    views = []
    for meta, thread, body in zip(metas, parts[::2], parts[1::2], strict=True):
        if thread and body:
            views.append(view(ctx, meta, read_thread(thread), json.loads(unpack(ctx.blobs, "body", body))))
    return views
