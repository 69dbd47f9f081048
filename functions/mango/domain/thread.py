"""The thread item: one conversation's position, and who may move it.

The rules are those of docs/architecture.md, section 4; design/model/thread_protocol.py is their executable form and
uses the same names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum

from mango.domain import keys
from mango.domain.ledger import Event, dump_json
from mango.domain.record import Record, values_of
from mango.domain.times import SECOND, rfc3339
from mango.domain.transaction import Item, Key


class Status(StrEnum):
    """Wire contract, section 5.1."""

    IDLE = "idle"
    RUNNING = "running"
    RESCHEDULING = "rescheduling"
    TERMINATED = "terminated"


class Gate(StrEnum):
    """The thread's barrier, as far as the thread item knows it."""

    NONE = ""
    OPEN = "open"
    COMPLETE = "complete"


START_GRACE = 1.5
"""Seconds after which the sweeper takes an execution that was owed for not started."""


@dataclass(frozen=True, slots=True)
class Thread(Record):
    """`S#<session>` / `TH#<thread>`. Points in time are microseconds; 0 and "" mean none.

    Attributes:
        head: seq of the last ledger commit.
        tail, taken: inputs ever put into the inbox, and ever taken up. The inbox holds the difference.
        wake: number of the newest execution; raised by every admission while a turn runs.
        holder, lease: the execution that holds the runner lease, and until when.
        gen: raised by every invocation of a round; a write of an older one is refused.
        flag: untaken interrupts, a JSON list of events.
        gate, bver: state and version of the barrier.
        owes: input in the ledger awaits a model request.
        hold: the inbox waits for the next message (decision 31).
        retry_at: no request before this time.
        due: when the sweeper must look, RFC 3339; set as long as anything is owed.
        attempts: failed tries of the request that is owed. troubles: failures in a row without a commit.
        rounds: rounds of the execution that holds the lease.
        span: id of the `span.model_request_start` that has no end yet.
        closed: "archived" or "deleting": nothing may be added any more.
        active, running_since: microseconds of running time, and since when it runs.
    """

    session_id: str
    thread_id: str
    workspace_id: str
    environment_id: str
    agent_name: str
    status: Status = Status.IDLE
    head: int = 0
    tail: int = 0
    taken: int = 0
    wake: int = 0
    holder: str = ""
    lease: int = 0
    gen: int = 0
    flag: str = "[]"
    gate: Gate = Gate.NONE
    bver: int = 0
    owes: bool = False
    hold: bool = False
    retry_at: int = 0
    due: str = ""
    attempts: int = 0
    troubles: int = 0
    rounds: int = 0
    span: str = ""
    closed: str = ""
    created_at: int = 0
    updated_at: int = 0
    active: int = 0
    running_since: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0

    @property
    def owner(self) -> str:
        return self.session_id

    @property
    def key(self) -> Key:
        return keys.thread(self.session_id, self.thread_id)

    @property
    def interrupts(self) -> list[Event]:
        """Interrupts that no round has taken yet, oldest first."""
        interrupts: list[Event] = json.loads(self.flag)
        return interrupts

    def with_interrupt(self, event: Event) -> Thread:
        return replace(self, flag=dump_json([*self.interrupts, event]))

    @property
    def waiting(self) -> int:
        """How many inputs the inbox holds."""
        return self.tail - self.taken

    def live(self, now: int) -> bool:
        """Whether a round holds the lease and it has not expired."""
        return bool(self.holder) and self.lease > now

    def runnable(self, now: int) -> bool:
        """Whether a round could do something now, whoever holds the lease. Nothing else is ever driven."""
        if self.closed or self.status is Status.TERMINATED:
            return False
        if self.interrupts:
            return True
        if self.gate is not Gate.NONE:
            return self.gate is Gate.COMPLETE
        if self.retry_at > now:
            return False
        return self.owes or (self.waiting > 0 and not self.hold)

    def released(self) -> Thread:
        return replace(self, holder="", lease=0)

    def due_in(self, now: int, seconds: float) -> Thread:
        return replace(self, due=rfc3339(now + int(seconds * SECOND)))

    def active_micros(self, now: int) -> int:
        """Running time up to now."""
        return self.active + (now - self.running_since if self.running_since else 0)


def read_thread(item: Item) -> Thread:
    """The inverse of `Thread.item`."""
    values = values_of(Thread, item)
    return Thread(**{**values, "status": Status(values["status"]), "gate": Gate(values["gate"])})
