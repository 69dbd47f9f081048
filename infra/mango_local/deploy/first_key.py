"""Keys written straight into a deployment's table, by whoever may write there."""

from __future__ import annotations

import os

from mango.aws.blobs import S3Blobs
from mango.aws.clients import AwsSettings, Clients
from mango.aws.doorbell import SqsDoorbell
from mango.aws.store import DynamoStore
from mango.domain.transaction import StoreUnavailable
from mango.services import keys
from mango.services.bootstrap import give_key
from mango.services.context import Context
from mango.system import SystemClock, SystemIds
from mango_local.access import Key, check_opens
from mango_local.deploy.endpoint import STAND_IN, Emulator
from mango_local.deploy.errors import DeployFailed


class Nobody:
    """An orchestrator for use cases that start no turns."""

    def start(self, session_id: str, thread_id: str, wake: int) -> None:
        raise AssertionError("writing a key starts no turn")


def give_first_key(emulator: Emulator, table: str, key: Key) -> None:
    """Makes a key that of a deployment on an emulator, in place of the one of an earlier deployment.

    Raises:
        KeyRefused: the key was revoked, or is that of an environment.
    """
    settings = AwsSettings(
        emulator.region,
        emulator.url,
        access_key_id=os.environ.get("AWS_ACCESS_KEY_ID") or STAND_IN,
        secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY") or STAND_IN,
    )
    ctx = _context(settings, table)
    give_key(ctx, key.token)
    check_opens(ctx, key)


def create_first_key(region: str, table: str, label: str) -> str:
    """A new key of a deployment, by the credentials that boto3 finds; its text, which is shown only once.

    Raises:
        DeployFailed: the table cannot be written.
    """
    settings = AwsSettings(region, os.environ.get("AWS_ENDPOINT_URL") or None)
    try:
        return keys.create_key(_context(settings, table), keys.DEFAULT_WORKSPACE, label).token
    except StoreUnavailable as error:
        raise DeployFailed(f"the key cannot be written into the table {table}: {error}") from None


def _context(settings: AwsSettings, table: str) -> Context:
    clients, clock = Clients(settings), SystemClock()
    return Context(
        store=DynamoStore(clients.dynamodb, table),
        blobs=S3Blobs(clients.s3, "-"),
        doorbell=SqsDoorbell(clients.sqs, "-"),
        orchestrator=Nobody(),
        clock=clock,
        ids=SystemIds(clock),
    )
