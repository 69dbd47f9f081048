"""The first transaction of a round: it takes the lease and says what the round is for.

`first_tx` of design/model/thread_protocol.py. It raises the generation, so that an earlier invocation finds its
writes refused; it moves `due` to the lease's expiry; it takes up input or the complete barrier; and it writes
`span.model_request_start` before any request is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mango.domain import keys
from mango.domain.ledger import Event
from mango.domain.thread import Gate, Thread, read_thread
from mango.domain.times import SECOND
from mango.domain.transaction import Ambiguous, Delete, Put, Refused, Transaction
from mango.services import history, outgoing
from mango.services.admission import inbox_item
from mango.services.context import Context
from mango.services.draft import Draft
from mango.services.readings import Reading, read_pointer
from mango.services.spill import INLINE_BYTES

FENCE = (
    "gen",
    "head",
    "wake",
    "holder",
    "lease",
    "retry_at",
    "bver",
    "tail",
    "taken",
    "flag",
    "owes",
    "hold",
    "status",
)
"""Everything the decision rests on."""

STEERING = 80
"""Messages that one request takes up at most, so that the transaction stays within 100 items."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The lease is held and a model request is due."""

    thread: Thread
    """As this round's first transaction left it."""
    reading: Reading
    """What that transaction was decided on."""


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing (more) to do in this invocation; `next` is its answer."""

    next: str


def claim(ctx: Context, session_id: str, thread_id: str, execution: str) -> Claimed | Done:
    """Takes the lease for this execution, or finds that there is nothing to do and touches nothing."""
    commit_id = ctx.ids.new("cmt")
    reading = ctx.recent.take(session_id)
    if reading is None or reading.thread.thread_id != thread_id:
        reading = _read(ctx, session_id, thread_id)
    while reading is not None:
        thread, now = reading.thread, ctx.clock.now()
        if (thread.live(now) and thread.holder != execution) or not thread.runnable(now):
            if reading.fresh:
                break
            reading = _read(ctx, session_id, thread_id)
            continue
        draft = Draft(thread, None, now, ctx.ids)
        decided = _decide(ctx, draft, execution)
        writes = draft.writes(ctx.blobs, FENCE, commit_id, decided or "model", draft.thread.gen)
        if _commit(ctx, thread, commit_id, Transaction(writes)):
            if decided:
                ctx.recent.put(reading.meta, draft.thread, None, reading.pointer)
            return Done(decided) if decided else Claimed(draft.thread, reading)
        reading = _read(ctx, session_id, thread_id)
    return Done("end")


def _commit(ctx: Context, thread: Thread, commit_id: str, transaction: Transaction) -> bool:
    """Whether it was applied, as far as anybody knows."""
    try:
        ctx.store.commit(transaction)
    except Refused:
        return False
    except Ambiguous:
        commit = history.commit_at(ctx.store, ctx.blobs, thread.session_id, thread.thread_id, thread.head + 1)
        return commit is not None and commit.id == commit_id
    return True


def _read(ctx: Context, session_id: str, thread_id: str) -> Reading | None:
    item, pointer = ctx.store.get_many([keys.thread(session_id, thread_id), keys.session_work(session_id)])
    if item is None:
        return None
    return Reading(None, read_thread(item), None, read_pointer(session_id, pointer) if pointer else None)


def _decide(ctx: Context, draft: Draft, execution: str) -> str | None:
    """Fills the draft; the answer when no request is to be made."""
    before = draft.thread
    rounds = before.rounds + 1 if before.holder == execution else 1
    draft.set(gen=before.gen + 1, retry_at=0, rounds=rounds)
    draft.close_span()
    if before.interrupts:
        return _take_interrupts(ctx, draft, execution)
    draft.run()
    _hold(ctx, draft, execution)
    for event in _take_input(ctx, draft):
        draft.append(event)
    start = outgoing.span_start(ctx.ids)
    draft.append(start)
    draft.set(owes=True, span=start["id"])
    return None


def _hold(ctx: Context, draft: Draft, execution: str) -> None:
    lease = draft.now + int(ctx.limits.runner_lease * SECOND)
    draft.thread = replace(draft.thread, holder=execution, lease=lease).due_in(draft.now, ctx.limits.runner_lease)


def _take_interrupts(ctx: Context, draft: Draft, execution: str) -> str:
    """An interrupt came before the request: none is made (commit order decides)."""
    draft.append(*draft.thread.interrupts)
    draft.set(flag="[]", owes=False, attempts=0)
    if draft.thread.gate is not Gate.NONE:
        draft.drop_barrier()
    if draft.thread.waiting:
        draft.run()
        _hold(ctx, draft, execution)
        return "round"
    draft.thread = draft.thread.released()
    draft.set(due="")
    draft.rest(outgoing.end_turn())
    return "end"


def _take_input(ctx: Context, draft: Draft) -> list[Event]:
    """A complete barrier with all that waited behind it, or the request that is owed, or the next message."""
    thread = draft.thread
    if thread.gate is Gate.COMPLETE:
        draft.drop_barrier()
        return _take(ctx, draft, STEERING)
    if thread.owes:
        return []
    draft.set(attempts=0)
    return _take(ctx, draft, 1)


def _take(ctx: Context, draft: Draft, limit: int) -> list[Event]:
    """The oldest inputs, at most `limit`; what is left of an item goes on under the number of its new first."""
    taken: list[Event] = []
    thread = draft.thread
    for item in history.inbox(ctx.store, ctx.blobs, thread, limit):
        share = item.events[: limit - len(taken)]
        rest = item.events[len(share) :]
        if not share:
            break
        draft.extra.append(Delete(item.key))
        if rest:
            key = keys.inbox(thread.session_id, thread.thread_id, item.number + len(share))
            draft.extra.append(Put(key, inbox_item(ctx.blobs, thread, rest, INLINE_BYTES)))
        taken += share
    draft.set(taken=thread.taken + len(taken))
    return taken
