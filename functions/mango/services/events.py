"""Sending events to a session."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

from mango.domain import keys
from mango.domain.calls import Barrier, read_barrier
from mango.domain.errors import Forbidden, InvalidRequest, RetryableConflict, Unauthenticated
from mango.domain.ledger import Event
from mango.domain.principal import Credential, Principal
from mango.domain.thread import Thread, read_thread
from mango.domain.times import rfc3339
from mango.domain.transaction import Above, Ambiguous, Check, Equals, Item, Refused, Transaction, Write
from mango.domain.wire.events import EventSend
from mango.services import history
from mango.services.admission import READ_FIELDS, Admission, echo
from mango.services.context import Context
from mango.services.draft import Draft
from mango.services.session_access import check_open, meta_key, missing, owned, primary_thread_id

ATTEMPTS = 40
"""Readings of the table before a request that always loses the race is given back to its sender."""

WORKER_EVENTS = frozenset({"user.tool_result", "user.custom_tool_result"})
"""What a work token may send (spec mango.md, section 1.5)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A session's items, as one admission read them."""

    meta: Item
    thread: Thread
    barrier: Barrier | None


def read_session(ctx: Context, principal: Principal, session_id: str) -> Reading:
    """META, primary thread and barrier in one read."""
    thread_id = primary_thread_id(session_id)
    meta, thread, barrier = ctx.store.get_many(
        [meta_key(session_id), keys.thread(session_id, thread_id), keys.barrier(session_id, thread_id)]
    )
    found = owned(meta, principal, session_id)
    if thread is None:
        raise missing(session_id)
    return Reading(found, read_thread(thread), read_barrier(barrier) if barrier else None)


def send(ctx: Context, principal: Principal, session_id: str, body: EventSend) -> dict[str, Any]:
    """Admits a batch of events, all or nothing; acknowledged input is durable together with its wake-up.

    Raises:
        InvalidRequest: an event cannot be admitted in the session's state.
        Unauthenticated: the lease of the work token ended meanwhile.
        RetryableConflict: the session is too busy.
    """
    events = prepare(ctx, body.to_dict()["events"], session_id)
    _check_scope(principal, events)
    tried = 0
    for attempt in range(ATTEMPTS):
        reading = read_session(ctx, principal, session_id)
        if tried and (answer := _found(ctx, reading.thread, events, tried)):
            return answer
        check_open(reading.meta, session_id)
        draft = Draft(reading.thread, reading.barrier, ctx.clock.now(), ctx.ids)
        admission = Admission(draft, ctx.blobs)
        owed = admission.admit(events)
        fence = _fence(principal, draft.now)
        writes = draft.writes(ctx.blobs, READ_FIELDS, events[0]["id"])
        try:
            ctx.store.commit(Transaction((*writes, *fence)))
        except Refused as refused:
            if fence and len(writes) in refused.indexes:
                raise Unauthenticated("the work lease has ended") from None
            time.sleep(random.uniform(0, 0.002 * min(attempt, 10)))  # noqa: S311  # spreads rivals, keeps no secret
            continue
        except Ambiguous:
            tried = tried or reading.thread.head + 1
            continue
        if owed:
            ctx.orchestrator.start(session_id, draft.thread.thread_id, draft.thread.wake)
        return _answer(events, {e["id"] for e in events if admission.in_ledger(e["id"])}, rfc3339(draft.now))
    raise RetryableConflict(f"session {session_id!r} is being changed by too many requests at once; try again")


DEFAULTS: dict[str, dict[str, Any]] = {
    "user.message": {},
    "user.interrupt": {"session_thread_id": None},
    "user.tool_confirmation": {"deny_message": None, "session_thread_id": None},
    "user.tool_result": {"content": [], "is_error": None, "session_thread_id": None},
    "user.custom_tool_result": {"content": [], "is_error": None, "session_thread_id": None},
}
"""Fields that an event shows although its sender left them out."""


def prepare(ctx: Context, inputs: list[dict[str, Any]], session_id: str) -> list[Event]:
    """Gives the sent events their ids and defaults.

    Raises:
        InvalidRequest: one is addressed to a thread that the session does not have.
    """
    for n, given in enumerate(inputs):
        if given.get("session_thread_id") not in (None, primary_thread_id(session_id)):
            raise InvalidRequest("the session has no such thread", path=f"events.{n}.session_thread_id")
    return [{"id": ctx.ids.new("sevt"), **DEFAULTS[given["type"]], **given} for given in inputs]


def _answer(events: list[Event], in_ledger: set[str], at: str) -> dict[str, Any]:
    return {"data": [echo(event, at if event["id"] in in_ledger else None) for event in events]}


def _check_scope(principal: Principal, events: list[Event]) -> None:
    if principal.kind is Credential.WORK and any(event["type"] not in WORKER_EVENTS for event in events):
        raise Forbidden("a work token may only send tool results")


def _fence(principal: Principal, now: int) -> tuple[Write, ...]:
    """A worker's result is accepted only while its claim holds."""
    if principal.kind is not Credential.WORK:
        return ()
    assert principal.environment_id and principal.work_id and principal.token_digest
    claim = (
        Equals("gen", principal.generation),
        Equals("digest", principal.token_digest),
        Equals("usable", True),
        Above("lease", now),
    )
    return (Check(keys.work(principal.environment_id, principal.work_id), claim),)


def _found(ctx: Context, thread: Thread, events: list[Event], since: int) -> dict[str, Any] | None:
    """The answer to an admission whose own answer was lost, if it was applied after all."""
    ids = {event["id"] for event in events}
    in_ledger: dict[str, str] = {}
    commits = history.commits(ctx.store, ctx.blobs, thread.session_id, thread.thread_id, above=since - 1)
    for commit in commits:
        in_ledger |= {event["id"]: rfc3339(commit.at) for event in commit.events if event["id"] in ids}
    queued = {event["id"] for event in history.waiting(ctx.store, ctx.blobs, thread)} & ids
    if not in_ledger and not queued:
        return None
    return {"data": [echo(event, in_ledger.get(event["id"])) for event in events]}
