"""Environment work: poll, acknowledge, heartbeat, stop (wire contract, section 4; architecture, section 6)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mango.domain import keys
from mango.domain.errors import Conflict, Forbidden, NotFound, PreconditionFailed
from mango.domain.principal import Credential, Principal
from mango.domain.times import SECOND, rfc3339
from mango.domain.transaction import Ambiguous, Delete, Put, Transaction, Write
from mango.domain.wire.work import HeartbeatQuery, PollQuery, StopBody
from mango.domain.work import NO_HEARTBEAT, Work, WorkState, read_work
from mango.services import work_token
from mango.services.context import Context
from mango.services.listing import Window, newest
from mango.services.paging import Cursors, check_limit
from mango.services.resources import page_of, place_of
from mango.services.work_store import Change, change_work, digest, end_work, load_work
from mango.services.work_token import authenticate_token

__all__ = ["acknowledge", "authenticate_token", "heartbeat", "list_page", "poll", "retrieve", "stats", "stop"]

CANDIDATES = 50
"""Queue rows read at a time."""
POLLER_SECONDS = 30
"""A worker counts as polling for so long after its last poll."""
MARK_EVERY = 10
"""Seconds between two marks of the same polling worker by this process."""
MAX_MARKS = 10_000
"""Workers name themselves, so that there is no end of names; forgetting one costs no more than marking it again."""


def check_environment(ctx: Context, principal: Principal, environment_id: str) -> None:
    """Raises NotFound unless the environment is the principal's."""
    if principal.kind is not Credential.WORKSPACE:
        if principal.environment_id != environment_id:
            raise Forbidden("this credential is for another environment")
        return
    item = ctx.store.get(keys.environment(environment_id))
    if item is None or item["workspace_id"] != principal.workspace_id:
        raise NotFound(f"environment {environment_id!r} was not found", details={"error_code": "environment_not_found"})


def poll(
    ctx: Context, principal: Principal, environment_id: str, query: PollQuery, worker_id: str | None
) -> dict[str, Any] | None:
    """Claims the oldest claimable work, or the named item; None when there is none.

    With `block_ms` it waits at the doorbell, where this process can hear one.
    """
    check_environment(ctx, principal, environment_id)
    if worker_id:
        _mark_poller(ctx, environment_id, worker_id)
    deadline = time.monotonic() + (query.block_ms or 0) / 1000
    while True:
        claimed = _claim_next(ctx, environment_id, query)
        remaining = deadline - time.monotonic()
        if claimed or remaining <= 0:
            return claimed
        ctx.doorbell.wait(environment_id, remaining)
        if not ctx.doorbell.hears:
            return _claim_next(ctx, environment_id, query)


def _claim_next(ctx: Context, environment_id: str, query: PollQuery) -> dict[str, Any] | None:
    now = ctx.clock.now()
    for work in _candidates(ctx, environment_id, query.work_id):
        if work.claimable(now):
            claimed = _claim(ctx, work, query.reclaim_older_than_ms)
            if claimed:
                return claimed
    return None


def _candidates(ctx: Context, environment_id: str, work_id: str | None) -> Iterator[Work]:
    """Work that a poller may look at, oldest first; claimed items stay listed until they are acknowledged."""
    if work_id:
        item = ctx.store.get(keys.work(environment_id, work_id))
        if item:
            yield read_work(item)
        return
    after: str | None = None
    while True:
        page = ctx.store.query(f"ENV#{environment_id}", prefix=keys.QUEUE_PREFIX, after=after, limit=CANDIDATES)
        wanted = [keys.work(environment_id, str(item["work_id"])) for _, item in page.items]
        yield from (read_work(item) for item in ctx.store.get_many(wanted) if item)
        after = page.next
        if after is None:
            return


def _claim(ctx: Context, seen: Work, reclaim_ms: int | None) -> dict[str, Any] | None:
    """Raises the generation and rotates the token; None when somebody else was faster."""
    seconds = reclaim_ms / 1000 if reclaim_ms else ctx.limits.acknowledge_within
    secret = ctx.ids.secret()
    token = ""

    def decide(work: Work) -> Change:
        nonlocal token
        now = ctx.clock.now()
        if not work.claimable(now):
            return Change(work)
        lease = now + int(seconds * SECOND)
        after = replace(
            work,
            state=WorkState.CLAIMED,
            gen=work.gen + 1,
            claims=work.claims + 1,
            usable=False,
            beat=NO_HEARTBEAT,
            last_beat="",
            ttl=ctx.limits.work_lease,
            lease=lease,
            due=rfc3339(lease),
        )
        token = work_token.issue(after, secret)
        queued = work.state in (WorkState.QUEUED, WorkState.CLAIMED)
        row: list[Write] = [] if queued else [Put(work.queue_key, {"work_id": work.work_id}, new=False)]
        return Change(replace(after, digest=digest(token)), row)

    work = change_work(ctx, seen.environment_id, seen.work_id, decide)
    if not token or work.digest != digest(token):
        return None
    return work.public(secret=work_token.wrap(token))


def acknowledge(ctx: Context, principal: Principal, environment_id: str, work_id: str) -> dict[str, Any]:
    """The claimer took it over: the token becomes usable. Repeating it changes nothing; too late is 409."""
    check_environment(ctx, principal, environment_id)

    def decide(work: Work) -> Change:
        now = ctx.clock.now()
        if work.state is WorkState.STARTING and work.live(now):
            return Change(work)
        if work.state is not WorkState.CLAIMED or not work.live(now):
            raise Conflict("work item is not awaiting acknowledgement")
        lease = now + work.ttl * SECOND
        after = replace(
            work, state=WorkState.STARTING, usable=True, acknowledged_at=now, lease=lease, due=rfc3339(lease)
        )
        return Change(after, [Delete(work.queue_key, must_exist=False)])

    return change_work(ctx, environment_id, work_id, decide).public()


def heartbeat(
    ctx: Context, principal: Principal, environment_id: str, work_id: str, query: HeartbeatQuery
) -> dict[str, Any]:
    """Compare and set. A token holder who repeats the previous value (its answer was lost) gets the current one.

    Raises:
        PreconditionFailed: the value is not the newest one, with the lease's state in the details.
    """
    _check_own(ctx, principal, environment_id, work_id)
    extended = False

    def decide(work: Work) -> Change:
        nonlocal extended
        now = ctx.clock.now()
        extended = work.state in (WorkState.STARTING, WorkState.ACTIVE)
        if not extended:
            return Change(work)
        expected = query.expected_last_heartbeat
        repeated = principal.kind is Credential.WORK and expected == work.last_beat != work.beat
        if not work.live(now) or (expected not in (None, work.beat) and not repeated):
            raise _stale(work)
        ttl = query.desired_ttl_seconds or work.ttl
        lease = now + ttl * SECOND
        after = replace(
            work,
            state=WorkState.ACTIVE,
            ttl=ttl,
            lease=lease,
            due=rfc3339(lease),
            heartbeat_at=max(now, work.heartbeat_at + 1),  # each beat has a value of its own
            started_at=work.started_at or now,
        )
        if not repeated:
            after = replace(after, last_beat=work.beat, beat=rfc3339(after.heartbeat_at))
        return Change(after)

    return _lease_state(change_work(ctx, environment_id, work_id, decide), extended)


def _lease_state(work: Work, extended: bool) -> dict[str, Any]:
    return {
        "type": "work_heartbeat",
        "last_heartbeat": work.beat,
        "lease_extended": extended,
        "state": work.public()["state"],
        "ttl_seconds": work.ttl,
    }


def _stale(work: Work) -> PreconditionFailed:
    state = {key: value for key, value in _lease_state(work, False).items() if key != "type"}
    if work.beat == NO_HEARTBEAT:
        state["last_heartbeat"] = None
    return PreconditionFailed(
        "expected_last_heartbeat is not the newest heartbeat of a live lease",
        details={"error_code": "heartbeat_precondition_failed", "current_state": state},
    )


def stop(ctx: Context, principal: Principal, environment_id: str, work_id: str, body: StopBody) -> dict[str, Any]:
    """Stops the work: at once with `force` or when nobody runs it, else by its worker's next heartbeat.

    Raises:
        Conflict: it is stopped already.
    """
    _check_own(ctx, principal, environment_id, work_id)

    def decide(work: Work) -> Change:
        now = ctx.clock.now()
        if work.state is WorkState.STOPPED:
            raise Conflict("work item is already stopped")
        if body.force or work.state not in (WorkState.ACTIVE, WorkState.STOPPING) or not work.live(now):
            return end_work(ctx, work, now)
        if work.state is WorkState.STOPPING:
            return Change(work)
        return Change(replace(work, state=WorkState.STOPPING, stop_requested_at=now))

    return change_work(ctx, environment_id, work_id, decide).public()


def _check_own(ctx: Context, principal: Principal, environment_id: str, work_id: str) -> None:
    check_environment(ctx, principal, environment_id)
    if principal.kind is Credential.WORK and principal.work_id != work_id:
        raise Forbidden("this credential is for another work item")


def retrieve(ctx: Context, principal: Principal, environment_id: str, work_id: str) -> dict[str, Any]:
    check_environment(ctx, principal, environment_id)
    return load_work(ctx, environment_id, work_id).public()


def list_page(
    ctx: Context, principal: Principal, environment_id: str, limit: int | None, page: str | None
) -> dict[str, Any]:
    """Newest first, stopped ones included."""
    check_environment(ctx, principal, environment_id)
    cursors = Cursors("work", principal.workspace_id, parent=environment_id)
    found = newest(
        ctx,
        keys.listing(environment_id, "work"),
        lambda item: read_work(item).public(),
        check_limit(limit, default=100, maximum=1000),
        Window(beyond=place_of(cursors, page)),
    )
    return page_of(cursors, found)


def stats(ctx: Context, principal: Principal, environment_id: str) -> dict[str, Any]:
    """How much work waits, and who asks for it."""
    check_environment(ctx, principal, environment_id)
    now = ctx.clock.now()
    works = [work for work in _candidates(ctx, environment_id, None) if work.state is not WorkState.STOPPED]
    queued = [work for work in works if work.claimable(now)]
    pollers = ctx.store.query(f"ENV#{environment_id}", prefix=keys.POLLER_PREFIX)
    recent = [item for _, item in pollers.items if _int(item["at"]) > now - POLLER_SECONDS * SECOND]
    return {
        "type": "work_queue_stats",
        "depth": len(queued),
        "pending": len(works) - len(queued),
        "oldest_queued_at": rfc3339(min(work.created_at for work in queued)) if queued else None,
        "workers_polling": len(recent),
    }


def _mark_poller(ctx: Context, environment_id: str, worker_id: str) -> None:
    now = ctx.clock.now()
    mark = (environment_id, worker_id[:200])
    if now - ctx.poll_marks.get(mark, 0) < MARK_EVERY * SECOND:
        return
    if len(ctx.poll_marks) >= MAX_MARKS:
        ctx.poll_marks.clear()
    ctx.poll_marks[mark] = now
    expires = now // SECOND + 10 * POLLER_SECONDS
    with suppress(Ambiguous):  # it only counts pollers
        ctx.store.commit(Transaction((Put(keys.poller(*mark), {"at": now, "ttl": expires}, new=False),)))


def _int(value: Any) -> int:
    assert isinstance(value, int)
    return value
