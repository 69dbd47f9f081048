"""Which adapters stand behind the ports of a function. Made once a process, clients when they are first used."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from mango.aws.blobs import S3Blobs
from mango.aws.clients import AwsSettings, Clients
from mango.aws.doorbell import SqsDoorbell
from mango.aws.orchestrator import StepFunctionsOrchestrator
from mango.aws.secrets import Secret
from mango.aws.store import DynamoStore
from mango.handlers.observing import Observing
from mango.handlers.settings import DrivingSettings, RoundSettings, Settings
from mango.ports import Doorbell, Orchestrator
from mango.services.context import LAMBDA_BYTES, Context, Limits
from mango.system import SystemClock, SystemIds

log = logging.getLogger("mango.handlers")

CONNECTIONS = 16
"""Kept per service: a function works on one request at a time, with a few threads."""


class Lazy:
    """A boto3 client that is made at its first call: making one takes tens of milliseconds, and many are not used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)


class Unwired:
    """Stands for starting turns and ringing in functions that have no permission for it, and no use."""

    hears = False

    def start(self, session_id: str, thread_id: str, wake: int) -> None:
        log.error("this function cannot start %s-%d, which is left to the sweeper", thread_id, wake)

    def open(self, environment_id: str) -> None:
        log.error("this function cannot make the doorbell of %s, which is left to its first ring", environment_id)

    def close(self, environment_id: str) -> None:
        log.error("this function cannot remove the doorbell of %s, which is left over", environment_id)

    def ring(self, environment_id: str, work_id: str) -> None:
        log.error("this function cannot ring for %s, which is left to the sweeper", work_id)

    def wait(self, environment_id: str, seconds: float) -> bool:
        return False


class Parts(NamedTuple):
    """What every function is made of."""

    observing: Observing
    clients: Clients
    store: DynamoStore


def started_by_lambda() -> bool:
    """Whether to wire at import: Lambda gives a starting process more of a processor than a request gets, and shows
    why a start failed."""
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def make_parts(function: str, settings: Settings) -> Parts:
    """Clients with the function's own credentials, and the table, whose client is made now: every request needs it."""
    observing = Observing(function, settings)
    clients = Clients(AwsSettings(settings.region, settings.endpoint_url, CONNECTIONS))
    store = DynamoStore(clients.dynamodb, settings.table)
    store.on_commit.append(observing.committed)
    return Parts(observing, clients, store)


def _context(
    settings: Settings, clients: Clients, store: DynamoStore, doorbell: Doorbell, orchestrator: Orchestrator
) -> Context:
    clock = SystemClock()
    blobs: Any = Lazy(lambda: clients.s3)
    return Context(
        store=store,
        blobs=S3Blobs(blobs, settings.bucket),
        doorbell=doorbell,
        orchestrator=orchestrator,
        clock=clock,
        ids=SystemIds(clock),
        limits=Limits(carried_bytes=LAMBDA_BYTES),
    )


def reading_context(settings: Settings, clients: Clients, store: DynamoStore) -> Context:
    """For functions that neither start turns nor ring."""
    unwired = Unwired()
    return _context(settings, clients, store, unwired, unwired)


def driving_context(settings: DrivingSettings, parts: Parts) -> Context:
    """For functions that start turns and ring for workers."""
    queues: Any = Lazy(lambda: parts.clients.sqs)
    machines = Lazy(lambda: parts.clients.other("stepfunctions", attempts=1))
    return _context(
        settings,
        parts.clients,
        parts.store,
        SqsDoorbell(queues, settings.queue_prefix, dead_letters=settings.dead_letters_arn),
        StepFunctionsOrchestrator(machines, settings.state_machine_arn),
    )


def model_secret(settings: RoundSettings, parts: Parts) -> Secret | None:
    """The secret with the model's credential, if one is named."""
    if settings.model_secret_arn is None:
        return None
    return Secret(Lazy(lambda: parts.clients.other("secretsmanager")), settings.model_secret_arn)
