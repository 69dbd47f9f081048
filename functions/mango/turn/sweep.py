"""The sweeper: re-drives whatever owes something and was not driven. It reads the `due` index and nothing else.

Every entry is judged by a fresh reading of its item; what it changes is conditional on that reading, so a sweep may
run anywhere, at any time, as often as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from mango.domain import keys
from mango.domain.errors import MangoError
from mango.domain.thread import START_GRACE, Thread, read_thread
from mango.domain.times import SECOND, rfc3339
from mango.domain.transaction import Ambiguous, Key, Put, Refused, Transaction, Update, Write
from mango.domain.work import HELD, NO_HEARTBEAT, Work, WorkState, read_work
from mango.services import deletion, files_item
from mango.services.context import Context
from mango.services.work_store import FENCE as WORK_FENCE
from mango.services.work_store import Change, end_work

PAGE = 100
RING_AT_LEAST_EVERY = 600.0
"""Longest pause in seconds between two rings for the same queued work."""


@dataclass(slots=True)
class SweepReport:
    """What one pass did."""

    started: int = 0
    requeued: int = 0
    stopped: int = 0
    rung: int = 0
    parked: int = 0
    deleted: int = 0
    lost: int = 0
    """Changes that somebody else made first; the next pass sees what is left."""
    failed: list[str] = field(default_factory=list)
    """Items that could not be driven, with the reason."""

    def __bool__(self) -> bool:
        return bool(self.started or self.requeued or self.stopped or self.rung or self.parked or self.deleted)


def sweep(ctx: Context) -> SweepReport:
    """One pass over everything that is due by now."""
    report = SweepReport()
    for key in _due(ctx, rfc3339(ctx.clock.now())):
        try:
            _look(ctx, key, report)
        except MangoError as error:  # one damaged item must not keep the others waiting
            report.failed.append(f"{key.pk} {key.sk}: {error.message}")
    return report


def void_leases(ctx: Context) -> SweepReport:
    """For the start of a deployment whose earlier life is over for certain: frees every runner lease and drives
    everything that is runnable, without waiting for leases to expire. Leases of workers stay: workers live on."""
    report = SweepReport()
    for key in _due(ctx, None):
        if key.sk.startswith("TH#"):
            _revive(ctx, key, report)
    return report


def _due(ctx: Context, at_most: str | None) -> Iterator[Key]:
    for shard in range(keys.DUE_SHARDS):
        start = None
        while True:
            page = ctx.store.query_index("due", f"due#{shard}", at_most=at_most, limit=PAGE, start=start)
            yield from (key for key, _ in page.items)
            start = page.next
            if start is None:
                break


def _look(ctx: Context, key: Key, report: SweepReport) -> None:
    item = ctx.store.get(key)
    if item is None or "due" not in item or str(item["due"]) > rfc3339(ctx.clock.now()):
        return
    if key.sk.startswith("TH#"):
        _drive(ctx, read_thread(item), report)
    elif key.sk.startswith("W#"):
        _sweep_work(ctx, read_work(item), report)
    elif key == keys.file(str(item["id"])):
        files_item.clean(ctx, item)
        report.deleted += 1
    elif key.sk == "META":
        deletion.resume(ctx, str(item["id"]))
        report.deleted += 1


def _drive(ctx: Context, thread: Thread, report: SweepReport) -> None:
    now = ctx.clock.now()
    if thread.live(now):
        return
    if not thread.runnable(now):
        _settle(ctx, thread, report)
        return
    after = replace(thread, wake=thread.wake + 1).due_in(now, START_GRACE)
    if _commit(ctx, report, _update(thread, after, "due", "wake", "holder", "lease", "gen")):
        report.started += 1
        ctx.orchestrator.start(thread.session_id, thread.thread_id, after.wake)


def _settle(ctx: Context, thread: Thread, report: SweepReport) -> None:
    """Due, but nothing to drive: before `retry_at` it is due later, otherwise not at all."""
    now = ctx.clock.now()
    after = thread.due_in(thread.retry_at, 0) if thread.retry_at > now else replace(thread, due="")
    _commit(ctx, report, _update(thread, after, "due", "wake", "head", "gen", "holder", "lease"))


def _revive(ctx: Context, key: Key, report: SweepReport) -> None:
    item = ctx.store.get(key)
    if item is None:
        return
    thread, now = read_thread(item), ctx.clock.now()
    freed = replace(thread.released(), gen=thread.gen + 1)
    if not freed.runnable(now):
        return
    after = replace(freed, wake=thread.wake + 1).due_in(now, START_GRACE)
    if _commit(ctx, report, _update(thread, after, "due", "wake", "holder", "lease", "gen")):
        report.started += 1
        ctx.orchestrator.start(thread.session_id, thread.thread_id, after.wake)


def _update(thread: Thread, after: Thread, *names: str) -> Update:
    return Update(
        thread.key,
        set=thread.changes_to(after),
        remove=thread.removals_to(after),
        conditions=thread.as_read("closed", *names),
    )


def _commit(ctx: Context, report: SweepReport, *writes: Write) -> bool:
    try:
        ctx.store.commit(Transaction(writes))
    except (Refused, Ambiguous):
        report.lost += 1
        return False
    return True


def _sweep_work(ctx: Context, work: Work, report: SweepReport) -> None:
    now = ctx.clock.now()
    if work.state is WorkState.STOPPED:
        change = Change(replace(work, due=""))
    elif work.live(now):
        return
    elif work.state is WorkState.STOPPING or work.spent:
        change = end_work(ctx, work, now)
        report.parked += change.parked
        report.stopped += not change.parked
    elif work.state is WorkState.QUEUED:
        change = _ring_again(ctx, work, now)
        report.rung += 1
    else:
        change = _requeue(ctx, work, now)
        report.requeued += 1
    update = Update(
        work.key,
        set=work.changes_to(change.after),
        remove=work.removals_to(change.after),
        conditions=work.as_read("due", *WORK_FENCE),
    )
    if _commit(ctx, report, update, *change.writes) and change.ring:
        ctx.doorbell.ring(work.environment_id, change.ring)


def _ring_again(ctx: Context, work: Work, now: int) -> Change:
    """Rings stay in the queue for days, so they are repeated for the lost ones only: less often the longer it waits."""
    waits = (now - work.created_at) / SECOND
    pause = max(ctx.limits.ring_again, min(waits, RING_AT_LEAST_EVERY))
    return Change(replace(work, due=rfc3339(now + int(pause * SECOND))), ring=work.work_id)


def _requeue(ctx: Context, work: Work, now: int) -> Change:
    """The lease expired: the token dies, and whoever comes next may have it."""
    assert work.state in HELD
    after = replace(
        work, state=WorkState.QUEUED, usable=False, beat=NO_HEARTBEAT, last_beat="", lease=0,
        due=rfc3339(now + int(ctx.limits.ring_again * SECOND)),
    )  # fmt: skip
    return Change(after, [Put(work.queue_key, {"work_id": work.work_id}, new=False)], ring=work.work_id)
