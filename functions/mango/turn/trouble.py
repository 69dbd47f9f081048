"""Trouble: what an execution does when its rounds fail for reasons of infrastructure. It never ends a session by
itself; only many failures in a row do (`trouble` of design/model/thread_protocol.py)."""

from __future__ import annotations

from dataclasses import replace

from mango.domain import keys
from mango.domain.thread import Status, read_thread
from mango.domain.times import SECOND
from mango.domain.transaction import Ambiguous, Refused, Transaction
from mango.ports import Json
from mango.services import history, outgoing
from mango.services.context import Context
from mango.services.draft import Draft
from mango.turn.finish import terminate

MAX_DELAY = 60
"""Longest wait before the next try, in seconds."""
FENCE = ("gen", "head", "wake", "holder", "lease")


def run_trouble(ctx: Context, session_id: str, thread_id: str, execution: str) -> Json:
    """Frees the lease, if this execution still holds it, and plans the next try; otherwise changes nothing."""
    commit_id = ctx.ids.new("cmt")
    tried = 0
    while True:
        if tried:
            commit = history.commit_at(ctx.store, ctx.blobs, session_id, thread_id, tried)
            if commit is not None and commit.id == commit_id:
                return {"next": "end"}
        item = ctx.store.get(keys.thread(session_id, thread_id))
        thread = read_thread(item) if item else None
        now = ctx.clock.now()
        if thread is None or thread.closed or not (thread.live(now) and thread.holder == execution):
            return {"next": "end"}  # never claimed, or replaced: `due` stands, the sweeper sees it
        draft = Draft(thread, None, now, ctx.ids)
        _plan(ctx, draft)
        try:
            ctx.store.commit(Transaction(draft.writes(ctx.blobs, FENCE, commit_id, "end", draft.thread.gen)))
        except (Refused, Ambiguous):
            tried = thread.head + 1
            continue
        return {"next": "end"}


def _plan(ctx: Context, draft: Draft) -> None:
    thread = draft.thread
    troubles = thread.troubles + 1
    draft.set(gen=thread.gen + 1, troubles=troubles)
    draft.close_span()
    if troubles >= ctx.limits.troubles:
        terminate(draft, "unknown_error", f"the turn failed {troubles} times in a row for reasons of infrastructure")
        return
    draft.append(
        outgoing.error(draft.ids, "unknown_error", "the turn met a problem of infrastructure and goes on", "retrying")
    )
    if thread.status is not Status.RESCHEDULING:
        draft.append(*outgoing.rescheduled(draft.ids, draft.thread))
    draft.status(Status.RESCHEDULING)
    retry_at = draft.now + min(2**troubles, MAX_DELAY) * SECOND
    draft.thread = replace(draft.thread.released(), retry_at=retry_at).due_in(retry_at, 0)
