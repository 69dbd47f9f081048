"""Changing work items: read, decide, commit on what was read, again until it holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mango.domain import keys
from mango.domain.calls import WORKER, read_barrier
from mango.domain.errors import NotFound, RetryableConflict
from mango.domain.thread import Thread, read_thread
from mango.domain.times import SECOND, rfc3339
from mango.domain.transaction import Ambiguous, Check, Delete, Put, Refused, Transaction, Update, Write
from mango.domain.work import MAX_CLAIMS, Work, WorkState, read_work
from mango.ports import Ids
from mango.services import outgoing
from mango.services.context import Context
from mango.services.draft import Draft
from mango.services.readings import Pointer, read_pointer
from mango.services.session_access import primary_thread_id

ATTEMPTS = 40
FENCE = ("gen", "state", "lease", "beat", "usable", "claims")
"""Fields of the item that every decision about it rests on."""
PARKED = (
    f"Tool calls were handed to workers {MAX_CLAIMS} times in a row without one result: whoever runs them may be lost, "
    "or the result may be refused. No worker gets them any more. Send a user.interrupt to close them and go on."
)


@dataclass(frozen=True, slots=True)
class Change:
    """A decided change; an unchanged item writes nothing.

    Attributes:
        ring: names work that became claimable.
        parked: the work was ended although calls wait, since nobody survives it; the session is told.
    """

    after: Work
    writes: Sequence[Write] = ()
    ring: str | None = None
    parked: bool = False


def missing_work(work_id: str) -> NotFound:
    return NotFound(f"work {work_id!r} was not found")


def load_work(ctx: Context, environment_id: str, work_id: str) -> Work:
    """Raises NotFound."""
    item = ctx.store.get(keys.work(environment_id, work_id))
    if item is None:
        raise missing_work(work_id)
    return read_work(item)


def change_work(ctx: Context, environment_id: str, work_id: str, decide: Callable[[Work], Change]) -> Work:
    """Applies a decision to a work item; `decide` may be asked again on a newer reading, or raise.

    Raises:
        NotFound: there is no such item.
        RetryableConflict: others change it all the time.
    """
    tried: Work | None = None
    for _ in range(ATTEMPTS):
        before = load_work(ctx, environment_id, work_id)
        if tried is not None and before == tried:
            return before
        change = decide(before)
        if change.after == before:
            return before
        update = Update(
            before.key,
            set=before.changes_to(change.after),
            remove=before.removals_to(change.after),
            conditions=before.as_read(*FENCE),
        )
        try:
            ctx.store.commit(Transaction((update, *change.writes)))
        except Refused:
            continue
        except Ambiguous:
            tried = change.after
            continue
        if change.ring:
            ctx.doorbell.ring(environment_id, change.ring)
        return change.after
    raise RetryableConflict(f"work {work_id!r} is being changed by others; try again")


def new_work(
    ids: Ids, workspace_id: str, environment_id: str, session_id: str, now: int, ring_again: float, claims: int = 0
) -> tuple[Work, list[Write]]:
    """A queued item, and the writes that create it and its row for pollers. `claims` of the work that it follows."""
    work = Work(
        work_id=ids.new("work"),
        environment_id=environment_id,
        session_id=session_id,
        workspace_id=workspace_id,
        created_at=now,
        due=rfc3339(now + int(ring_again * SECOND)),
        claims=claims,
    )
    return work, [Put(work.key, work.item()), Put(work.queue_key, {"work_id": work.work_id})]


class Opened(NamedTuple):
    """Live work for a call that may run now: the writes that make sure of it, the pointer then, what to ring for."""

    writes: list[Write]
    pointer: Pointer | None
    ring: str | None = None


def open_work(ctx: Context, thread: Thread, known: Pointer | None, now: int) -> Opened:
    """The session's live work as read, or a new item; `ask` of design/model/work_lease.py.

    Conditional on the pointer: of two transactions that each look at the other's item, one is refused.
    """
    session_id, environment_id = thread.session_id, thread.environment_id
    pointer = known
    if pointer is None:
        item = ctx.store.get(keys.session_work(session_id))
        pointer = read_pointer(session_id, item) if item else Pointer(session_id)
    if pointer.live:
        return Opened([pointer.unchanged()], pointer)
    work, puts = new_work(ctx.ids, thread.workspace_id, environment_id, session_id, now, ctx.limits.ring_again)
    moved = pointer.moved(work.work_id, live=True)
    after = replace(pointer, work_id=work.work_id, ver=pointer.ver + 1, live=True)
    return Opened([*puts, moved], after, ring=work.work_id)


def end_work(ctx: Context, work: Work, now: int) -> Change:
    """The item is stopped and its token dead. If a call waits, a successor takes its place, or the work is parked.

    Conditional on the session's pointer and on the barrier version it read, so that input which races the end of
    the work is never left without a worker.
    """
    session, thread_id = work.session_id, primary_thread_id(work.session_id)
    pointer_item, thread_item, barrier = ctx.store.get_many(
        [keys.session_work(session), keys.thread(session, thread_id), keys.barrier(session, thread_id)]
    )
    ended, row = stopped(work, now), Delete(work.queue_key, must_exist=False)
    if pointer_item is None or thread_item is None:
        return Change(ended, [row])  # the session is gone
    pointer, thread = read_pointer(session, pointer_item), read_thread(thread_item)
    if pointer.work_id != work.work_id:
        return Change(ended, [row])
    # A call that awaits its approval needs no worker yet; its approval opens work again.
    calls = read_barrier(barrier).open_calls if barrier else ()
    waiting = [call for call in calls if call.kind == WORKER and call.approved]
    as_read = Check(thread.key, thread.as_read("bver"))
    if not waiting or thread.closed:
        return Change(ended, [row, as_read, pointer.moved(work.work_id, live=False)])
    if work.claims >= MAX_CLAIMS:
        told = _tell(ctx, thread, now)
        return Change(ended, [row, *told, pointer.moved(work.work_id, live=False)], parked=True)
    successor, puts = new_work(
        ctx.ids, work.workspace_id, work.environment_id, session, now, ctx.limits.ring_again, work.claims
    )
    return Change(ended, [row, as_read, *puts, pointer.moved(successor.work_id, live=True)], ring=successor.work_id)


def _tell(ctx: Context, thread: Thread, now: int) -> tuple[Write, ...]:
    """Writes why nothing happens into the history of a thread whose calls wait (decision 41)."""
    draft = Draft(thread, None, now, ctx.ids)
    draft.append(outgoing.error(ctx.ids, "unknown_error", PARKED, "exhausted"))
    return draft.writes(ctx.blobs, ("head", "gen", "bver"), ctx.ids.new("cmt"))


def stop_session_work(ctx: Context, session_id: str, environment_id: str) -> None:
    """Ends the session's live work, if any, without a successor; its token dies with it. May be repeated."""
    for _ in range(ATTEMPTS):
        item = ctx.store.get(keys.session_work(session_id))
        pointer = read_pointer(session_id, item) if item else Pointer(session_id)
        if not pointer.live:
            return
        found = ctx.store.get(keys.work(environment_id, pointer.work_id))
        work = read_work(found) if found else None
        if work is None or work.state is WorkState.STOPPED:
            return
        after = stopped(work, ctx.clock.now())
        update = Update(
            work.key,
            set=work.changes_to(after),
            remove=work.removals_to(after),
            conditions=work.as_read(*FENCE),
        )
        moved = pointer.moved(pointer.work_id, live=False)
        try:
            ctx.store.commit(Transaction((update, Delete(work.queue_key, must_exist=False), moved)))
            return
        except (Refused, Ambiguous):
            continue
    raise RetryableConflict(f"the work of session {session_id!r} is being changed by others; try again")


def stopped(work: Work, now: int) -> Work:
    return replace(
        work,
        state=WorkState.STOPPED,
        usable=False,
        lease=0,
        due="",
        stopped_at=now,
        stop_requested_at=work.stop_requested_at or now,
    )


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
