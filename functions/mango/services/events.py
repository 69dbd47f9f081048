"""Sending events to a session."""

from __future__ import annotations

import random
import time
from typing import Any

from mango.domain import keys
from mango.domain.errors import Forbidden, InvalidRequest, NotFound, RetryableConflict, Unauthenticated
from mango.domain.ledger import Event
from mango.domain.principal import Credential, Principal
from mango.domain.thread import Gate, Thread
from mango.domain.times import rfc3339
from mango.domain.transaction import Above, Ambiguous, Equals, Refused, Transaction, Update, Write
from mango.domain.wire.events import EventSend
from mango.services import history
from mango.services.admission import READ_FIELDS, Admission, echo
from mango.services.context import Context
from mango.services.draft import Draft
from mango.services.readings import Reading
from mango.services.session_access import check_open, primary_thread_id, read_session, recent_session
from mango.services.work_store import Opened, open_work

ATTEMPTS = 40
"""Readings of the table before a request that always loses the race is given back to its sender."""

WORKER_EVENTS = frozenset({"user.tool_result", "user.custom_tool_result"})
"""What a work token may send (spec mango.md, section 1.5)."""


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
    reading = recent_session(ctx, principal, session_id)
    for attempt in range(ATTEMPTS):
        if tried and (answer := _found(ctx, reading.thread, events, tried)):
            return answer
        try:
            return _admit(ctx, principal, reading, events)
        except (InvalidRequest, NotFound):
            if reading.fresh:
                raise
        except Refused:
            time.sleep(random.uniform(0, 0.002 * min(attempt, 10)))  # noqa: S311  # spreads rivals, keeps no secret
        except Ambiguous:
            tried = tried or reading.thread.head + 1
        reading = read_session(ctx, principal, session_id)
    raise RetryableConflict(f"session {session_id!r} is being changed by too many requests at once; try again")


def _admit(ctx: Context, principal: Principal, reading: Reading, events: list[Event]) -> dict[str, Any]:
    """One try, on one reading. Raises what `send` says, `Refused` and `Ambiguous`."""
    draft, admission, owed = _decide(ctx, reading, events)
    opened = _open(ctx, admission, reading)
    writes = (*draft.writes(ctx.blobs, READ_FIELDS, events[0]["id"]), *opened.writes)
    fence = _fence(principal, draft.now)
    try:
        ctx.store.commit(Transaction((*writes, *fence)))
    except Refused as refused:
        if fence and len(writes) in refused.indexes:
            raise Unauthenticated("the work lease has ended") from None
        raise
    ctx.recent.put(reading.meta, draft.thread, draft.barrier, opened.pointer)
    if opened.ring:
        ctx.doorbell.ring(draft.thread.environment_id, opened.ring)
    if owed:
        ctx.orchestrator.start(draft.thread.session_id, draft.thread.thread_id, draft.thread.wake)
    return _answer(events, {e["id"] for e in events if admission.in_ledger(e["id"])}, rfc3339(draft.now))


def _decide(ctx: Context, reading: Reading, events: list[Event]) -> tuple[Draft, Admission, bool]:
    check_open(reading.thread)
    draft = Draft(reading.thread, reading.barrier, ctx.clock.now(), ctx.ids)
    admission = Admission(draft, ctx.blobs)
    return draft, admission, admission.admit(events)


def _open(ctx: Context, admission: Admission, reading: Reading) -> Opened:
    """Work for the calls that were approved, if any was."""
    if not admission.needs_worker or admission.draft.thread.gate is not Gate.OPEN:
        return Opened([], reading.pointer)
    return open_work(ctx, reading.thread, reading.pointer, admission.draft.now)


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
    """A worker's result is accepted only while its claim holds, and proves that the work can be survived."""
    if principal.kind is not Credential.WORK:
        return ()
    assert principal.environment_id and principal.work_id and principal.token_digest
    claim = (
        Equals("gen", principal.generation),
        Equals("digest", principal.token_digest),
        Equals("usable", True),
        Above("lease", now),
    )
    return (Update(keys.work(principal.environment_id, principal.work_id), set={"claims": 0}, conditions=claim),)


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
