"""The final commit of a round: everything the answer causes, in one transaction.

`last_tx` of design/model/thread_protocol.py. It is conditional on generation, head and wake as last read. When it
is refused, the runner looks for its own commit id, then reads again: deposed, it ends; interrupted, it drops the
answer; otherwise it commits the same answer on the new reading.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from mango.domain import keys
from mango.domain.calls import WORKER, Barrier
from mango.domain.thread import START_GRACE, Status, Thread, read_thread
from mango.domain.times import SECOND, rfc3339
from mango.domain.transaction import Ambiguous, Refused, Transaction, Write
from mango.ports import Json, ModelError, ModelUsage
from mango.services import history, outgoing
from mango.services.context import Context
from mango.services.draft import Draft
from mango.services.readings import read_pointer
from mango.services.work_store import open_work
from mango.turn.claim import Claimed
from mango.turn.reading import Said
from mango.turn.transcript import answer_write

FENCE = ("gen", "head", "wake")
MAX_DELAY = 60.0
"""Longest wait before a request is made again, in seconds; also the longest that an endpoint may ask for."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A model request that came to an end: with an answer, with an error, or (neither) cancelled."""

    said: Said | None = None
    usage: ModelUsage = field(default_factory=ModelUsage)
    error: ModelError | None = None


class Finish:
    """Commits the end of one round, as often as it takes."""

    def __init__(self, ctx: Context, claimed: Claimed, finished: Finished) -> None:
        self._ctx = ctx
        self._claimed = claimed
        self._finished = finished
        self._pointer = self._pointer_after = claimed.reading.pointer
        self._jitter = random.uniform(0, 0.25)  # noqa: S311  # spreads retries, keeps no secret
        self._ring: tuple[str, str] | None = None
        self._start = 0
        self._next = "end"

    def commit(self) -> Json:
        """Returns the round's answer: `next` and, for a back-off, `retry_at`."""
        ctx, commit_id = self._ctx, self._ctx.ids.new("cmt")
        cancelled = self._finished.said is None and self._finished.error is None
        thread = self._read_again() if cancelled else self._claimed.thread
        while thread is not None and thread.gen == self._claimed.thread.gen and not thread.closed:
            draft = Draft(thread, None, ctx.clock.now(), ctx.ids)
            self._decide(draft)
            writes = draft.writes(ctx.blobs, FENCE, commit_id, self._next, thread.gen)
            try:
                ctx.store.commit(Transaction(writes))
                ctx.recent.put(self._claimed.reading.meta, draft.thread, draft.barrier, self._pointer_after)
                return self._answer(draft.thread)
            except (Refused, Ambiguous):
                tried = thread.head + 1
            thread = self._read_again()
            commit = history.commit_at(ctx.store, ctx.blobs, self._session, self._thread_id, tried)
            if commit is not None and commit.id == commit_id:
                return self._answer(draft.thread)
        return {"next": "end"}

    @property
    def _session(self) -> str:
        return self._claimed.thread.session_id

    @property
    def _thread_id(self) -> str:
        return self._claimed.thread.thread_id

    def _read_again(self) -> Thread | None:
        item, pointer = self._ctx.store.get_many([self._claimed.thread.key, keys.session_work(self._session)])
        self._pointer = read_pointer(self._session, pointer) if pointer else None
        return read_thread(item) if item else None

    def _answer(self, thread: Thread) -> Json:
        if self._start:
            self._ctx.orchestrator.start(self._session, self._thread_id, self._start)
        if self._ring:
            self._ctx.doorbell.ring(*self._ring)
        if self._next == "backoff":
            return {"next": "backoff", "retry_at": rfc3339(thread.retry_at)}
        return {"next": self._next}

    def _decide(self, draft: Draft) -> None:
        self._ring, self._start, self._next = None, 0, "end"
        self._pointer_after = self._pointer
        said, error = self._finished.said, self._finished.error
        if draft.thread.interrupts:
            self._interrupted(draft)
        elif error is not None:
            self._failed(draft, error)
        elif said is not None:
            self._said(draft, said)
        else:
            # Cancelled for an interrupt that this reading does not show cannot be: flags are taken by runners only.
            raise AssertionError("a round was cancelled without a reason")

    def _end_span(self, draft: Draft, *, is_error: bool) -> None:
        draft.append(outgoing.span_end(draft.ids, draft.thread.span, self._finished.usage, is_error=is_error))
        spent, thread = self._finished.usage, draft.thread
        draft.set(
            span="",
            input_tokens=thread.input_tokens + spent.input_tokens,
            output_tokens=thread.output_tokens + spent.output_tokens,
            cache_creation_tokens=thread.cache_creation_tokens + spent.cache_creation_input_tokens,
            cache_read_tokens=thread.cache_read_tokens + spent.cache_read_input_tokens,
        )

    def _interrupted(self, draft: Draft) -> None:
        self._end_span(draft, is_error=True)
        draft.append(*draft.thread.interrupts)
        draft.set(flag="[]", owes=False, attempts=0, troubles=0)
        self._end_turn(draft, outgoing.end_turn())

    def _said(self, draft: Draft, said: Said) -> None:
        draft.append(*said.events)
        self._end_span(draft, is_error=False)
        draft.append(*said.results)
        draft.set(owes=False, attempts=0, troubles=0)
        if said.answer.content:
            thread = draft.thread
            draft.extra.append(
                answer_write(
                    self._ctx.blobs,
                    thread.workspace_id,
                    thread.session_id,
                    thread.thread_id,
                    draft.before.head + 1,
                    said.answer,
                )
            )
        if said.calls:
            self._park(draft, Barrier(said.calls))
        elif said.called:
            draft.set(owes=True)
            self._go_on(draft)
        else:
            self._end_turn(draft, said.stop_reason, said.stop_details)

    def _park(self, draft: Draft, barrier: Barrier) -> None:
        """The thread waits for results; nothing runs meanwhile."""
        draft.open_barrier(barrier)
        draft.extra += self._worker_for(draft, barrier)
        draft.thread = draft.thread.released()
        draft.set(due="")
        draft.rest(outgoing.requires_action([call.id for call in barrier.calls]))

    def _worker_for(self, draft: Draft, barrier: Barrier) -> list[Write]:
        """Live work for the calls that a worker may run at once; an approval opens it for the others."""
        if not any(call.kind == WORKER and call.approved for call in barrier.calls):
            return []
        opened = open_work(self._ctx, draft.thread, self._pointer, draft.now)
        self._pointer_after = opened.pointer
        if opened.ring:
            self._ring = (draft.thread.environment_id, opened.ring)
        return opened.writes

    def _end_turn(self, draft: Draft, stop_reason: Json, stop_details: Json | None = None) -> None:
        if draft.thread.waiting:
            self._go_on(draft)
            return
        draft.thread = draft.thread.released()
        draft.set(due="")
        draft.rest(stop_reason, stop_details)

    def _go_on(self, draft: Draft) -> None:
        """Another round follows: in this execution, or after many rounds in a fresh one."""
        limits, thread = self._ctx.limits, draft.thread
        if thread.rounds < limits.rounds_per_execution:
            lease = draft.now + int(limits.runner_lease * SECOND)
            draft.thread = replace(thread, lease=lease).due_in(draft.now, limits.runner_lease)
            self._next = "round"
            return
        self._start = thread.wake + 1
        draft.thread = replace(thread.released(), wake=self._start).due_in(draft.now, START_GRACE)

    def _failed(self, draft: Draft, error: ModelError) -> None:
        draft.close_span()
        attempts = draft.thread.attempts + 1
        if not error.retryable:
            self._terminate(draft, error)
        elif attempts < self._ctx.limits.model_attempts:
            self._back_off(draft, error, attempts)
        else:
            self._exhaust(draft, error)

    def _back_off(self, draft: Draft, error: ModelError, attempts: int) -> None:
        delay = min(2.0 ** (attempts - 1) * (1 + self._jitter), MAX_DELAY)
        if error.retry_after is not None:
            delay = max(delay, min(error.retry_after, MAX_DELAY))
        draft.append(outgoing.error(draft.ids, error.kind, error.message, "retrying"))
        draft.append(*outgoing.rescheduled(draft.ids, draft.thread))
        draft.status(Status.RESCHEDULING)
        retry_at = draft.now + int(delay * SECOND)
        draft.thread = replace(draft.thread.released(), attempts=attempts, retry_at=retry_at, troubles=0)
        draft.thread = draft.thread.due_in(retry_at, START_GRACE)
        self._next = "backoff"

    def _exhaust(self, draft: Draft, error: ModelError) -> None:
        draft.append(outgoing.error(draft.ids, error.kind, error.message, "exhausted"))
        hold = draft.thread.waiting > 0
        draft.thread = replace(draft.thread.released(), owes=False, attempts=0, troubles=0, hold=hold, due="")
        draft.rest(outgoing.retries_exhausted())

    def _terminate(self, draft: Draft, error: ModelError) -> None:
        terminate(draft, error.kind, error.message)


def terminate(draft: Draft, kind: str, message: str) -> None:
    """The session ends for good, with the reason in its history."""
    draft.append(outgoing.error(draft.ids, kind, message, "terminal"))
    draft.thread = replace(draft.thread.released(), owes=False, attempts=0, due="")
    draft.status(Status.TERMINATED)
    draft.append(*outgoing.terminated(draft.ids, draft.thread))
