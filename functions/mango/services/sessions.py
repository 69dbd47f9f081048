"""Sessions: creating, reading, archiving. Listing and deletion have files of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from mango.domain import keys
from mango.domain.errors import InvalidRequest, RetryableConflict
from mango.domain.ledger import dump_json
from mango.domain.principal import Principal
from mango.domain.thread import Status, Thread, read_thread
from mango.domain.times import rfc3339
from mango.domain.tools import resolve_tools
from mango.domain.transaction import Ambiguous, Check, Equals, Item, Put, Refused, Transaction, Update, Write
from mango.domain.wire.agents import resolve_model
from mango.domain.wire.sessions import AgentReference, AgentWithOverrides, SessionCreate
from mango.services import agents, environments, outgoing
from mango.services.admission import Admission
from mango.services.context import Context
from mango.services.creation import commit_new
from mango.services.draft import Draft
from mango.services.events import ATTEMPTS, prepare
from mango.services.readings import Pointer
from mango.services.resources import shown_time
from mango.services.session_access import meta_key, missing, owned, primary_thread_id, read_session
from mango.services.spill import pack, unpack
from mango.services.work_store import stop_session_work

Json = dict[str, Any]
SNAPSHOT_FIELDS = (
    "id", "type", "version", "name", "description", "system", "model", "tools", "mcp_servers", "skills", "multiagent",
    "execution_identity",
)  # fmt: skip


def create(ctx: Context, principal: Principal, body: SessionCreate) -> Json:
    """A session with its primary thread; with `initial_events` its first turn starts at once, all or nothing.

    Raises:
        NotFound, InvalidRequest: the agent or environment is missing or archived.
    """
    environment = environments.load(ctx, principal.workspace_id, body.environment_id)
    if environment["archived_at"]:
        raise InvalidRequest(
            "the environment is archived", path="environment_id", details={"error_code": "environment_archived"}
        )
    snapshot = _snapshot(ctx, principal, body)
    session_id, now = ctx.ids.new("sesn"), ctx.clock.now()
    thread = Thread(
        session_id=session_id,
        thread_id=primary_thread_id(session_id),
        workspace_id=principal.workspace_id,
        environment_id=body.environment_id,
        agent_name=snapshot["name"],
        created_at=now,
        updated_at=now,
    )
    draft = Draft(thread, None, now, ctx.ids)
    admission = Admission(draft, ctx.blobs)
    inputs = [event.to_dict() for event in body.initial_events]
    owed = admission.admit(prepare(ctx, inputs, session_id)) if inputs else False
    meta = _meta(thread, body, snapshot, now)
    _write(ctx, draft, meta, snapshot)
    if owed:
        ctx.orchestrator.start(session_id, thread.thread_id, draft.thread.wake)
    return view(ctx, {**meta, "status": str(draft.thread.status)}, draft.thread, snapshot)


def _snapshot(ctx: Context, principal: Principal, body: SessionCreate) -> Json:
    """The session's own resolved copy of the agent (wire contract, section 5.1)."""
    choice = body.agent
    agent_id, version = (choice, None) if isinstance(choice, str) else (choice.id, choice.version)
    agent = agents.load(ctx, principal.workspace_id, agent_id, version)
    if agent["archived_at"]:
        raise InvalidRequest("the agent is archived", path="agent")
    snapshot = {name: agent[name] for name in SNAPSHOT_FIELDS}
    if isinstance(choice, AgentReference) or not isinstance(choice, AgentWithOverrides):
        return snapshot
    given = choice.to_dict()
    if "model" in given and choice.model is not None:
        # An effort cannot be overridden (wire contract, section 5.1).
        snapshot["model"] = {**resolve_model(choice.model), "effort": snapshot["model"]["effort"]}
    if "system" in given:
        snapshot["system"] = given["system"]
    if "tools" in given:
        snapshot["tools"] = resolve_tools(given["tools"] or [])
    return snapshot


def _meta(thread: Thread, body: SessionCreate, snapshot: Json, now: int) -> Item:
    return {
        "id": thread.session_id,
        "workspace_id": thread.workspace_id,
        "environment_id": thread.environment_id,
        "agent_id": snapshot["id"],
        "agent_version": snapshot["version"],
        "title": body.title,
        "metadata": dump_json(body.metadata),
        "status": str(Status.IDLE),
        "created_at": now,
        "updated_at": now,
        "archived_at": None,
        **keys.listed(thread.workspace_id, "session", now, thread.session_id),
    }


def _write(ctx: Context, draft: Draft, meta: Item, snapshot: Json) -> None:
    """All of it is new."""
    fresh = draft.before
    blob_key = f"{fresh.workspace_id}/{fresh.session_id}/agent"
    body = pack(ctx.blobs, "body", dump_json(snapshot), blob_key)
    changed = draft.writes(ctx.blobs, (), ctx.ids.new("cmt"))
    # The thread is written whole; of the draft's other writes only the new items are needed.
    new = [write for write in changed if isinstance(write, Put)]
    writes: list[Write] = [
        Check(keys.agent(snapshot["id"]), (Equals("archived_at", None),)),
        Check(keys.environment(fresh.environment_id), (Equals("archived_at", None),)),
        Put(keys.meta(fresh.session_id), {**meta, "status": str(draft.thread.status)}),
        Put(keys.snapshot(fresh.session_id), body),
        Put(draft.thread.key, draft.thread.item()),
        Put(keys.session_work(fresh.session_id), Pointer(fresh.session_id).item()),
        *new,
    ]
    try:
        commit_new(ctx, Transaction(tuple(writes)))
    except Refused:
        raise RetryableConflict("the agent or the environment was archived at this moment; try again") from None


def load_snapshot(ctx: Context, session_id: str) -> Json:
    """The agent as the session runs it."""
    item = ctx.store.get(keys.snapshot(session_id))
    if item is None:
        raise missing(session_id)
    snapshot: Json = json.loads(unpack(ctx.blobs, "body", item))
    return snapshot


def retrieve(ctx: Context, principal: Principal, session_id: str) -> Json:
    meta, thread, body = ctx.store.get_many(
        [
            meta_key(session_id),
            keys.thread(session_id, primary_thread_id(session_id)),
            keys.snapshot(session_id),
        ]
    )
    found = owned(meta, principal, session_id)
    if thread is None or body is None:
        raise missing(session_id)
    return view(ctx, found, read_thread(thread), json.loads(unpack(ctx.blobs, "body", body)))


def view(ctx: Context, meta: Item, thread: Thread, snapshot: Json) -> Json:
    """The wire's `BetaManagedAgentsSession`."""
    now = ctx.clock.now()
    created_at, updated_at = _int(meta["created_at"]), _int(meta["updated_at"])
    active = thread.active_micros(now) / 1_000_000
    return {
        "id": thread.session_id,
        "type": "session",
        "agent": snapshot,
        "environment_id": meta["environment_id"],
        "status": meta["status"],
        "title": meta["title"],
        "metadata": json.loads(str(meta["metadata"])),
        "resources": [],
        "vault_ids": [],
        "outcome_evaluations": [],
        "budget": None,
        "deployment_id": None,
        "stats": {"active_seconds": active, "duration_seconds": max(updated_at - created_at, 0) / 1_000_000},
        "usage": outgoing.usage(thread, now),
        "created_at": rfc3339(created_at),
        "updated_at": rfc3339(max(updated_at, thread.updated_at)),
        "archived_at": shown_time(meta["archived_at"]),
    }


def refuse_running(status: Status, session_id: str, what: str) -> None:
    """Decision 12: 400, since the client would retry a 409."""
    if status in (Status.RUNNING, Status.RESCHEDULING):
        raise InvalidRequest(
            f"session {session_id!r} is {status} and cannot be {what}; send a user.interrupt event first"
        )


def archive(ctx: Context, principal: Principal, session_id: str) -> Json:
    """Ends the session for good; its history stays (decision 33), its work stops. Repeating it changes nothing."""
    commit_id = ctx.ids.new("cmt")
    for _ in range(ATTEMPTS):
        reading = read_session(ctx, principal, session_id)
        if reading.thread.closed:
            stop_session_work(ctx, session_id, reading.thread.environment_id)
            assert reading.meta is not None  # `read_session` found it
            return view(ctx, reading.meta, reading.thread, load_snapshot(ctx, session_id))
        refuse_running(reading.thread.status, session_id, "archived")
        draft = Draft(reading.thread, reading.barrier, ctx.clock.now(), ctx.ids)
        draft.set(closed="archived", due="")
        if draft.thread.status is not Status.TERMINATED:
            draft.status(Status.TERMINATED)
            draft.append(*outgoing.terminated(ctx.ids, draft.thread))
        writes = draft.writes(ctx.blobs, ("status", "head", "gen", "wake", "tail", "bver"), commit_id)
        try:
            ctx.store.commit(Transaction(_with_archive(writes, session_id, draft.now)))
        except (Refused, Ambiguous):
            continue
    raise RetryableConflict(f"session {session_id!r} is being changed by others; try again")


def _with_archive(writes: tuple[Write, ...], session_id: str, now: int) -> tuple[Write, ...]:
    """META is written once, with its new status and the time."""
    key = keys.meta(session_id)
    archived: Item = {"archived_at": now, "updated_at": now}
    merged = [replace(w, set={**w.set, **archived}) if isinstance(w, Update) and w.key == key else w for w in writes]
    if not any(write.key == key for write in writes):
        merged.append(Update(key, set=archived))
    return tuple(merged)


def _int(value: Any) -> int:
    assert isinstance(value, int)
    return value
