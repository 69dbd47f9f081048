"""Environments: where the workers of sessions run."""

from __future__ import annotations

import json
from typing import Any

from mango.domain import keys
from mango.domain.errors import NotFound
from mango.domain.ledger import dump_json
from mango.domain.principal import Principal
from mango.domain.transaction import Item, Put, Transaction
from mango.domain.wire.environments import EnvironmentCreate, EnvironmentListQuery
from mango.services import creation
from mango.services.context import Context
from mango.services.listing import Window, newest
from mango.services.paging import Cursors
from mango.services.resources import archiving, page_of, place_of, shown_time

Json = dict[str, Any]

KIND = "environments"


def create(ctx: Context, principal: Principal, body: EnvironmentCreate) -> Json:
    """A new environment; names need not differ (decision 22). Its doorbell is made with it, and is not archived with
    it: sessions that exist go on."""
    environment_id, now = ctx.ids.new("env"), ctx.clock.now()
    item: Item = {
        "id": environment_id,
        "workspace_id": principal.workspace_id,
        "name": body.name,
        "description": body.description,
        "config": dump_json({"type": "self_hosted"}),
        "metadata": dump_json(body.metadata),
        "scope": body.scope or "organization",
        "created_at": now,
        "updated_at": now,
        "archived_at": None,
        **keys.listed(principal.workspace_id, KIND, now, environment_id),
    }
    creation.commit_new(ctx, Transaction((Put(keys.environment(environment_id), item),)))
    ctx.doorbell.open(environment_id)
    return _show(item)


def retrieve(ctx: Context, principal: Principal, environment_id: str) -> Json:
    """One environment of the workspace."""
    return _show(load(ctx, principal.workspace_id, environment_id))


def list_page(ctx: Context, principal: Principal, query: EnvironmentListQuery) -> Json:
    """Newest first."""
    cursors = Cursors(KIND, principal.workspace_id, filters={"include_archived": query.include_archived}, order="desc")

    def show(item: Item) -> Json | None:
        return None if item["archived_at"] is not None and not query.include_archived else _show(item)

    window = Window(beyond=place_of(cursors, query.page))
    found = newest(ctx, keys.listing(principal.workspace_id, KIND), show, query.limit, window)
    return page_of(cursors, found)


def archive(ctx: Context, principal: Principal, environment_id: str) -> Json:
    """No new sessions from now on; those that exist go on. Archiving again changes nothing."""
    key, now = keys.environment(environment_id), ctx.clock.now()
    item = creation.change(
        ctx, key, lambda: load(ctx, principal.workspace_id, environment_id), lambda item: archiving(key, item, now)
    )
    return _show(item)


def load(ctx: Context, workspace_id: str, environment_id: str) -> Item:
    """An environment's item, also for sessions that are to run there.

    Raises:
        NotFound: the workspace has no such environment.
    """
    item = ctx.store.get(keys.environment(environment_id)) if environment_id.startswith("env_") else None
    if item is None or item["workspace_id"] != workspace_id:
        raise missing(environment_id)
    return item


def missing(environment_id: str) -> NotFound:
    return NotFound(f"environment {environment_id!r} was not found", details={"error_code": "environment_not_found"})


def _show(item: Item) -> Json:
    return {
        "id": item["id"],
        "type": "environment",
        "name": item["name"],
        "description": item["description"],
        "config": json.loads(str(item["config"])),
        "metadata": json.loads(str(item["metadata"])),
        "scope": item["scope"],
        "created_at": shown_time(item["created_at"]),
        "updated_at": shown_time(item["updated_at"]),
        "archived_at": shown_time(item["archived_at"]),
    }
