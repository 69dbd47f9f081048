"""One activation of a session: follows its events and runs its tool calls, one at a time, in order.

All decisions are made in one thread, which waits for one kind of thing: messages. Heartbeats, events, the end of a
call and signals come in as messages from the threads that do the waiting.
"""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from mango_worker.errors import ApiRefused
from mango_worker.item.calls import INTERRUPTED, Call, Calls, Event
from mango_worker.item.lease import Lease, LeaseLost, StopRequested
from mango_worker.item.outcome import Outcome
from mango_worker.item.results import Posted, Results, monotonic_remaining
from mango_worker.text import one_line
from mango_worker.tools.base import Cancel, text_result
from mango_worker.tools.toolset import Toolset

WIND_UP = 6.0  # seconds for a cancelled call to end and its result to be posted
STOPPED = "the worker was stopped while this tool ran; it may have had part of its effect"
CLOSED = "the call was closed elsewhere"


@dataclass(frozen=True, slots=True)
class Arrived:
    events: list[Event]


@dataclass(frozen=True, slots=True)
class CallEnded:
    call_id: str
    posted: Posted


@dataclass(frozen=True, slots=True)
class LeaseEnded:
    why: Exception


@dataclass(frozen=True, slots=True)
class FeedRefused:
    why: ApiRefused


@dataclass(frozen=True, slots=True)
class Terminate:
    pass


_Message: TypeAlias = Arrived | CallEnded | LeaseEnded | FeedRefused | Terminate


@dataclass(slots=True)
class _Running:
    call: Call
    cancel: Cancel
    silent: bool = False  # nobody wants its result


class Activation:
    """`log` gets one line per remarkable event. `deliver` may be called from any thread and from signal handlers."""

    def __init__(
        self, lease: Lease, results: Results, tools: Toolset, max_idle: float, log: Callable[[str], None]
    ) -> None:
        self._lease, self._results, self._tools = lease, results, tools
        self._max_idle, self._log = max_idle, log
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._calls = Calls(tools)
        self._running: _Running | None = None
        self._outcome: Outcome | None = None
        self._last_event = time.monotonic()
        self._wind_up_until = 0.0

    def deliver(self, message: _Message) -> None:
        self._inbox.put(message)

    def run(self) -> Outcome:
        """Work until there is nothing left to do or no right to do it; the final stop is the caller's."""
        while True:
            self._receive()
            self._drop_closed()
            if self._outcome is None:
                self._start_next()
                self._check_idle()
            if self._outcome is not None and (self._running is None or time.monotonic() >= self._wind_up_until):
                return self._outcome

    def _receive(self) -> None:
        """Wait for a message, then take all that are there: a result may stand right behind the call it answers."""
        try:
            message = self._inbox.get(timeout=self._patience())
            while True:
                self._handle(message)
                message = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _patience(self) -> float:
        if self._outcome is not None:
            return max(0.01, self._wind_up_until - time.monotonic())
        if self._calls.resting and self._running is None:
            return max(0.01, self._last_event + self._max_idle - time.monotonic())
        return 3600.0

    def _handle(self, message: _Message) -> None:
        match message:
            case Arrived(events):
                self._take_in(events)
            case CallEnded(call_id, posted):
                self._call_ended(call_id, posted)
            case LeaseEnded(why):
                self._lease_ended(why)
            case FeedRefused(why):
                self._feed_refused(why)
            case Terminate():
                self._end(Outcome.FINISHED, "asked to stop", STOPPED)

    def _take_in(self, events: list[Event]) -> None:
        if sum(self._calls.apply(event) for event in events):
            self._last_event = time.monotonic()
        if self._calls.ended:
            self._end(Outcome.FINISHED, self._calls.ended, CLOSED, silent=True)

    def _call_ended(self, call_id: str, posted: Posted) -> None:
        self._running = None
        self._calls.close(call_id)
        self._last_event = time.monotonic()
        if posted is Posted.LEASE_LOST:
            self._end(Outcome.LEASE_LOST, "the API refused a result: lease lost", CLOSED, silent=True)
        elif posted is Posted.SESSION_GONE:
            self._end(Outcome.FINISHED, "the session is gone", CLOSED, silent=True)
        elif posted is Posted.DROPPED:
            self._log(f"the result of {one_line(call_id, 80)} was not wanted")

    def _lease_ended(self, why: Exception) -> None:
        if isinstance(why, StopRequested):
            self._end(Outcome.FINISHED, f"told to stop: {why}", STOPPED)
        elif isinstance(why, LeaseLost):
            self._end(Outcome.LEASE_LOST, f"lease lost: {why}", CLOSED, silent=True)
        else:
            self._end(Outcome.FAILED, f"heartbeat refused: {why}", STOPPED)

    def _feed_refused(self, why: ApiRefused) -> None:
        if why.status in (404, 410):
            self._end(Outcome.FINISHED, f"the session is gone: {why}", CLOSED, silent=True)
        elif why.status in (401, 403, 412):
            self._end(Outcome.LEASE_LOST, f"lease lost: {why}", CLOSED, silent=True)
        else:
            self._end(Outcome.FAILED, f"events refused: {why}", STOPPED)

    def _end(self, outcome: Outcome, why: str, reason: str, silent: bool = False) -> None:
        """Begin to wind up. The loss of the lease outranks an end that is already under way."""
        if self._outcome is None:
            self._log(why)
            self._wind_up_until = time.monotonic() + WIND_UP
        if self._outcome is None or outcome is Outcome.LEASE_LOST:
            self._outcome = outcome
        if outcome is Outcome.LEASE_LOST:
            self._results.close()
        if self._running is not None:
            self._running.silent = self._running.silent or silent
            self._running.cancel.throw(reason)

    def _drop_closed(self) -> None:
        """Cancel the running call if it was answered elsewhere or interrupted."""
        running = self._running
        if running is None:
            return
        if not self._calls.is_open(running.call.id):
            running.silent = True
            running.cancel.throw(CLOSED)
        elif running.call.interrupted:
            running.cancel.throw(INTERRUPTED)

    def _start_next(self) -> None:
        if self._running is not None or (call := self._calls.next_due()) is None:
            return
        self._running = _Running(call, Cancel())
        threading.Thread(target=self._perform, args=(self._running,), name="call", daemon=True).start()

    def _perform(self, running: _Running) -> None:
        """Runs in a thread of its own: the tool, then its result."""
        call = running.call
        if call.interrupted:
            result = text_result(INTERRUPTED, True)
        else:
            result = self._tools.run(call.name, call.input, running.cancel)
        posted = Posted.ANSWERED
        if not running.silent:
            posted = self._results.post(call.id, result, self._post_window())
        self.deliver(CallEnded(call.id, posted))

    def _post_window(self) -> Callable[[], float]:
        """How long posting may be tried: while the lease holds, and while winding up no longer than that."""

        def remaining() -> float:
            lease = self._lease.remaining
            return lease if self._outcome is None else min(lease, monotonic_remaining(self._wind_up_until)())

        return remaining

    def _check_idle(self) -> None:
        busy = not self._calls.resting or self._running is not None or self._calls.next_due() is not None
        if not busy and time.monotonic() - self._last_event >= self._max_idle:
            self._end(Outcome.FINISHED, f"nothing to do for {self._max_idle:g} s", STOPPED)
