"""Deleting a session: fence, stop its work, remove contents and rows, leave a tombstone. Resumable at every step.

Each step may run twice or late. The fence is written first, with a `due` time, so that the sweeper goes on with a
deletion whose process was lost (docs/architecture.md, section 4).
"""

from __future__ import annotations

from typing import Any

from mango.domain import keys
from mango.domain.errors import RetryableConflict
from mango.domain.principal import Principal
from mango.domain.times import SECOND, rfc3339
from mango.domain.transaction import (
    Ambiguous,
    Delete,
    Equals,
    Item,
    Put,
    Refused,
    Transaction,
    Update,
)
from mango.services.context import Context
from mango.services.events import ATTEMPTS
from mango.services.readings import Reading
from mango.services.session_access import read_session
from mango.services.sessions import refuse_running
from mango.services.work_store import stop_session_work

TOMBSTONE_SECONDS = 24 * 3600
RESUME_AFTER = 10
"""Seconds after which the sweeper takes a deletion for abandoned."""
BATCH = 25


def delete(ctx: Context, principal: Principal, session_id: str) -> dict[str, Any]:
    """Deletes the session with its history. Running ones are refused (decision 12)."""
    for _ in range(ATTEMPTS):
        reading = read_session(ctx, principal, session_id)
        refuse_running(reading.thread.status, session_id, "deleted")
        try:
            ctx.store.commit(_fence(reading, session_id, ctx.clock.now()))
        except Refused:
            continue
        except Ambiguous:
            meta = ctx.store.get(keys.meta(session_id))
            if meta is not None and not meta.get("deleted_at"):
                continue
        resume(ctx, session_id)
        return {"id": session_id, "type": "session_deleted"}
    raise RetryableConflict(f"session {session_id!r} is being changed by others; try again")


def _fence(reading: Reading, session_id: str, now: int) -> Transaction:
    thread = reading.thread
    due = keys.due(session_id, now + RESUME_AFTER * SECOND)
    close = Update(
        thread.key,
        set={"closed": "deleting"},
        remove=keys.DUE_ATTRIBUTES,
        conditions=thread.as_read("closed", "status", "head", "gen", "wake", "bver"),
    )
    return Transaction((Update(keys.meta(session_id), set={"deleted_at": now, **due}), close))


def resume(ctx: Context, session_id: str) -> None:
    """Does what is left of a deletion that was fenced."""
    meta = ctx.store.get(keys.meta(session_id))
    if meta is None or not meta.get("deleted_at") or "due" not in meta:
        return
    stop_session_work(ctx, session_id, str(meta["environment_id"]))
    _remove_rows(ctx, session_id)
    _leave_tombstone(ctx, meta, session_id)


def _remove_rows(ctx: Context, session_id: str) -> None:
    """Contents in blobs first, then the rows that name them; META stays."""
    partition = keys.session_partition(session_id)
    while True:
        page = ctx.store.query(partition, limit=BATCH + 1)
        rows = [(key, item) for key, item in page.items if key != keys.meta(session_id)]
        if not rows:
            return
        for _, item in rows:
            for blob_key in _blobs_of(item):
                ctx.blobs.delete(blob_key)
        try:
            ctx.store.commit(Transaction(tuple(Delete(key, must_exist=False) for key, _ in rows)))
        except Ambiguous:
            continue


def _blobs_of(item: Item) -> list[str]:
    return [str(value) for name, value in item.items() if name.endswith("_blob") and value]


def _leave_tombstone(ctx: Context, meta: Item, session_id: str) -> None:
    now = ctx.clock.now()
    tombstone: Item = {
        "id": session_id,
        "workspace_id": meta["workspace_id"],
        "environment_id": meta["environment_id"],
        "status": meta["status"],
        "deleted_at": meta["deleted_at"],
        "removed_at": rfc3339(now),
        "ttl": now // SECOND + TOMBSTONE_SECONDS,
    }
    done = Put(keys.meta(session_id), tombstone, new=False, conditions=(Equals("deleted_at", meta["deleted_at"]),))
    try:
        ctx.store.commit(Transaction((done,)))
    except (Refused, Ambiguous):
        return  # `due` stands unless it was applied, so the sweeper looks again
