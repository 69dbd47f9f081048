"""The work item: the lease on a session's tools (docs/architecture.md, section 6; design/model/work_lease.py)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mango.domain import keys
from mango.domain.record import Record, values_of
from mango.domain.times import rfc3339
from mango.domain.transaction import Item, Key


class WorkState(StrEnum):
    """Wire states, and `CLAIMED`, which the wire still calls queued: polled, not yet acknowledged."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    STARTING = "starting"
    ACTIVE = "active"
    STOPPING = "stopping"
    STOPPED = "stopped"


HELD = frozenset({WorkState.CLAIMED, WorkState.STARTING, WorkState.ACTIVE})
"""States in which somebody holds the item as long as the lease lives."""
NO_HEARTBEAT = "NO_HEARTBEAT"
MAX_CLAIMS = 5
"""So often work is handed out without a result; then nobody gets it any more (tests/model/poison.py)."""


@dataclass(frozen=True, slots=True)
class Work(Record):
    """`ENV#<environment>` / `W#<work>`. Points in time are microseconds, 0 means never.

    Attributes:
        gen: raised by every claim.
        digest, usable: SHA-256 of the claim's token, and whether it may be used (from acknowledgement to the end).
        beat, last_beat: the newest heartbeat's value and the one before it.
        lease, ttl: until when the holder has it, and for how many seconds a heartbeat extends it.
        due: when the sweeper must look, RFC 3339.
        claims: how often it, and the work that it follows, was handed out since the last result.
    """

    work_id: str
    environment_id: str
    session_id: str
    workspace_id: str
    created_at: int
    state: WorkState = WorkState.QUEUED
    gen: int = 0
    digest: str = ""
    usable: bool = False
    beat: str = NO_HEARTBEAT
    last_beat: str = ""
    lease: int = 0
    ttl: int = 30
    due: str = ""
    claims: int = 0
    metadata: str = "{}"
    acknowledged_at: int = 0
    started_at: int = 0
    heartbeat_at: int = 0
    stop_requested_at: int = 0
    stopped_at: int = 0

    @property
    def owner(self) -> str:
        return self.work_id

    @property
    def key(self) -> Key:
        return keys.work(self.environment_id, self.work_id)

    @property
    def queue_key(self) -> Key:
        return keys.queued_work(self.environment_id, self.created_at, self.work_id)

    def live(self, now: int) -> bool:
        return self.lease > now

    @property
    def spent(self) -> bool:
        """Nobody may have it any more; the sweeper ends it when its last holder is gone."""
        return self.claims >= MAX_CLAIMS

    def claimable(self, now: int) -> bool:
        return not self.spent and (self.state is WorkState.QUEUED or (self.state in HELD and not self.live(now)))

    def item(self) -> Item:
        # Explicit, since a dataclass with slots is a new class that `super()` without arguments does not know.
        return {
            **Record.item(self),
            **keys.listed(self.environment_id, "work", self.created_at, self.work_id),
        }

    def public(self, secret: str | None = None) -> dict[str, Any]:
        """The wire's `BetaSelfHostedWork`; `secret` only in the answer to a poll."""
        state = WorkState.QUEUED if self.state is WorkState.CLAIMED else self.state
        return {
            "id": self.work_id,
            "type": "work",
            "environment_id": self.environment_id,
            "data": {"type": "session", "id": self.session_id},
            "state": str(state),
            "metadata": json.loads(self.metadata),
            "secret": secret,
            "created_at": rfc3339(self.created_at),
            "acknowledged_at": _moment(self.acknowledged_at),
            "started_at": _moment(self.started_at),
            "latest_heartbeat_at": _moment(self.heartbeat_at),
            "stop_requested_at": _moment(self.stop_requested_at),
            "stopped_at": _moment(self.stopped_at),
        }


def read_work(item: Item) -> Work:
    """The inverse of `Work.item`."""
    values = values_of(Work, item)
    return Work(**{**values, "state": WorkState(values["state"])})


def _moment(at: int) -> str | None:
    return rfc3339(at) if at else None
