"""What every use case is given: the ports and the settings of this process."""

from __future__ import annotations

from dataclasses import dataclass, field

from mango.ports import Blobs, Clock, Doorbell, Ids, Orchestrator, Store
from mango.services.readings import Recent


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings that bound the product. Times in seconds unless the name says otherwise.

    Attributes:
        runner_lease: how long a round's lease lives without renewal (architecture, section 4).
        renew_every: how often a running round renews it.
        look_every: how often a running round looks for interrupts.
        work_lease: default lease of claimed work (decision 37).
        acknowledge_within: how long a claim may stay unacknowledged before it is handed out again.
        ring_again: how long work may stay queued before the sweeper rings again.
        rounds_per_execution: after so many rounds a fresh execution goes on.
        model_attempts: tries of one model request before `retries_exhausted` (spec mango.md 3.4).
        troubles: failures in a row without a commit that terminate the session.
        model_seconds: limit of one model request.
        carried_bytes: the largest content of a file that one request, or one answer, of this process carries; larger
            ones take the ways of `docs/api-files.md`. None where a server streams. `LAMBDA_BYTES` on Lambda.
    """

    runner_lease: float = 30.0
    renew_every: float = 10.0
    look_every: float = 0.5
    work_lease: int = 30
    acknowledge_within: float = 5.0
    ring_again: float = 30.0
    rounds_per_execution: int = 200
    model_attempts: int = 3
    troubles: int = 10
    model_seconds: float = 780.0
    carried_bytes: int | None = None


LAMBDA_BYTES = 4_500_000
"""Bytes of content that fit into a Lambda event or answer: 6 MB in base64, which leaves room for what is around it."""


@dataclass(frozen=True, slots=True)
class Context:
    """Ports and limits, chosen by the composition root."""

    store: Store
    blobs: Blobs
    doorbell: Doorbell
    orchestrator: Orchestrator
    clock: Clock
    ids: Ids
    limits: Limits = field(default_factory=Limits)
    recent: Recent = field(default_factory=Recent)
    poll_marks: dict[tuple[str, str], int] = field(default_factory=dict)
    """When this process last noted that a worker polls: environment and worker id, microseconds. Its user bounds it."""
