"""Agents: definitions of what sessions run. A version never changes; archiving ends new uses."""

from __future__ import annotations

import json
from typing import Any

from mango.domain import keys
from mango.domain.errors import NotFound
from mango.domain.ledger import dump_json
from mango.domain.principal import Principal
from mango.domain.tools import resolve_tools
from mango.domain.transaction import Item, Put, Transaction, Value
from mango.domain.wire.agents import AgentCreate, AgentListQuery, resolve_model
from mango.services import creation
from mango.services.context import Context
from mango.services.listing import Window, newest
from mango.services.paging import Cursors
from mango.services.resources import archiving, page_of, place_of, shown_time
from mango.services.spill import pack, unpack

Json = dict[str, Any]

KIND = "agents"


def define(body: AgentCreate) -> Json:
    """The definition that a version holds: everything resolved, in the form of responses."""
    given = body.to_dict()
    return {
        "name": body.name,
        "description": body.description,
        "model": resolve_model(body.model),
        "system": body.system,
        "tools": resolve_tools(given.get("tools", [])),
        "mcp_servers": [],
        "skills": [],
        "multiagent": None,
        "execution_identity": {"type": "service_account"},
        "metadata": dict(body.metadata),
    }


def create(ctx: Context, principal: Principal, body: AgentCreate) -> Json:
    """A new agent at version 1."""
    agent_id, now = ctx.ids.new("agent"), ctx.clock.now()
    workspace = principal.workspace_id
    definition = dump_json(define(body))
    common: dict[str, Value] = {
        "id": agent_id,
        "workspace_id": workspace,
        "version": 1,
        "created_at": now,
        "updated_at": now,
        **pack(ctx.blobs, "definition", definition, f"{workspace}/agents/{agent_id}/1"),
    }
    meta: Item = {**common, "archived_at": None, **keys.listed(workspace, KIND, now, agent_id)}
    creation.commit_new(
        ctx,
        Transaction((Put(keys.agent(agent_id), meta), Put(keys.agent_version(agent_id, 1), common))),
    )
    return _show(ctx, meta, meta)


def retrieve(ctx: Context, principal: Principal, agent_id: str, version: int | None = None) -> Json:
    """The latest version, or the one asked for."""
    return load(ctx, principal.workspace_id, agent_id, version)


def load(ctx: Context, workspace_id: str, agent_id: str, version: int | None = None) -> Json:
    """An agent in the form of responses, also for sessions that take a snapshot of it.

    Raises:
        NotFound: the workspace has no such agent, or the agent no such version.
    """
    meta = _read(ctx, workspace_id, agent_id)
    if version is None or version == meta["version"]:
        return _show(ctx, meta, meta)
    found = ctx.store.get(keys.agent_version(agent_id, version)) if version <= _MAX_VERSION else None
    if found is None:
        raise NotFound(f"agent {agent_id!r} has no version {version}")
    return _show(ctx, meta, found)


_MAX_VERSION = 99_999_999
"""What the sort key of versions has room for."""


def list_page(ctx: Context, principal: Principal, query: AgentListQuery) -> Json:
    """Latest versions, newest agent first."""
    filters = {
        "include_archived": query.include_archived,
        "created_at": [query.created_at_gte, query.created_at_lte],
    }
    cursors = Cursors(KIND, principal.workspace_id, filters=filters, order="desc")
    window = Window(query.created_at_gte, query.created_at_lte, place_of(cursors, query.page))

    def show(item: Item) -> Json | None:
        return None if item["archived_at"] is not None and not query.include_archived else _show(ctx, item, item)

    found = newest(ctx, keys.listing(principal.workspace_id, KIND), show, query.limit, window)
    return page_of(cursors, found)


def archive(ctx: Context, principal: Principal, agent_id: str) -> Json:
    """Read-only from now on and not to be used by new sessions; archiving again changes nothing."""
    key = keys.agent(agent_id)
    now = ctx.clock.now()
    item = creation.change(
        ctx, key, lambda: _read(ctx, principal.workspace_id, agent_id), lambda item: archiving(key, item, now)
    )
    return _show(ctx, item, item)


def _read(ctx: Context, workspace_id: str, agent_id: str) -> Item:
    item = ctx.store.get(keys.agent(agent_id)) if agent_id.startswith("agent_") else None
    if item is None or item["workspace_id"] != workspace_id:
        raise NotFound(f"agent {agent_id!r} was not found")
    return item


def _show(ctx: Context, meta: Item, version: Item) -> Json:
    definition: Json = json.loads(unpack(ctx.blobs, "definition", version))
    return {
        "id": meta["id"],
        "type": "agent",
        "version": version["version"],
        **definition,
        "created_at": shown_time(meta["created_at"]),
        "updated_at": shown_time(version["updated_at"]),
        "archived_at": shown_time(meta["archived_at"]),
    }
