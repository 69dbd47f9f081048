"""Watching a running model request: keeps the runner's lease and looks for reasons to stop."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from mango.domain import keys
from mango.domain.thread import Thread, read_thread
from mango.domain.times import SECOND, rfc3339
from mango.domain.transaction import Ambiguous, Equals, Refused, StoreUnavailable, Transaction, Update
from mango.ports import Cancellation
from mango.services.context import Context

INTERRUPTED, DEPOSED, TIMED_OUT = "interrupted", "deposed", "timed out"


class Watch:
    """Runs beside a model request, as a context manager; cancels it and says why in `reason`."""

    def __init__(self, ctx: Context, thread: Thread, cancellation: Cancellation) -> None:
        self.reason = ""
        self._ctx = ctx
        self._thread = thread
        self._cancellation = cancellation
        self._done = threading.Event()
        self._worker = threading.Thread(target=self._run, name=f"watch-{thread.thread_id}", daemon=True)

    def __enter__(self) -> Watch:
        self._worker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._worker.join()

    def _run(self) -> None:
        limits = self._ctx.limits
        began = renewed = time.monotonic()
        while not self._done.wait(limits.look_every):
            now = time.monotonic()
            reason = TIMED_OUT if now - began > limits.model_seconds else self._look()
            if reason:
                self.reason = reason
                self._cancellation.cancel()
                return
            if now - renewed >= limits.renew_every:
                self._renew()
                renewed = now

    def _look(self) -> str:
        try:
            item = self._ctx.store.get(self._thread.key)
        except StoreUnavailable:
            return ""  # the final commit is fenced; until then the request may go on
        if item is None:
            return DEPOSED
        current = read_thread(item)
        if current.gen != self._thread.gen or current.closed:
            return DEPOSED
        return INTERRUPTED if current.interrupts else ""

    def _renew(self) -> None:
        """Keeps the lease, even an expired one, while nobody else took it."""
        seconds = self._ctx.limits.runner_lease
        until = self._ctx.clock.now() + int(seconds * SECOND)
        thread = self._thread
        renewal = Update(
            thread.key,
            set={"lease": until, "due": rfc3339(until), "due_shard": keys.due_shard(thread.session_id)},
            conditions=(Equals("gen", thread.gen), Equals("holder", thread.holder)),
        )
        try:
            self._ctx.store.commit(Transaction((renewal,)))
        except (Refused, Ambiguous, StoreUnavailable):
            return  # the next look tells, and the final commit is fenced
