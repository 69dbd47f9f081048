"""Composition root of the embedded profile: which adapters stand behind the ports."""

from __future__ import annotations

import os
import time

from pynamodb.exceptions import PynamoDBException

from mango.aws.blobs import S3Blobs
from mango.aws.clients import AwsSettings, Clients
from mango.aws.doorbell import SqsDoorbell
from mango.aws.store import DynamoStore
from mango.aws.table import create_table
from mango.domain.transaction import StoreUnavailable
from mango.ports import Orchestrator
from mango.services.bootstrap import give_key
from mango.services.context import Context
from mango.services.readings import Recent
from mango.system import SystemClock, SystemIds
from mango_local.access import Key, check_opens
from mango_local.doorbell import LocalDoorbell

TABLE = "mango"
BUCKET = "mango"
QUEUE_PREFIX = "mango"
REGION = "us-east-1"
STAND_IN = "mango"
CONNECTIONS = 256
"""Kept per service: as many as threads of all kinds may ask at once."""
PING_SECONDS = 10.0
"""How long a process waits for a store that is only starting."""


class NoStore(Exception):
    """No store answers at the address."""


class Profile:
    """Adapters on one store. `context` binds them to what starts turns."""

    def __init__(self, endpoint: str) -> None:
        _keep_loopback_off_proxies()
        # roto checks no credentials; naming some keeps boto3 from looking for the user's.
        self.settings = AwsSettings(REGION, endpoint, CONNECTIONS, access_key_id=STAND_IN, secret_access_key=STAND_IN)
        self.clients = Clients(self.settings)
        self.store = DynamoStore(self.clients.dynamodb, TABLE)
        self.blobs = S3Blobs(self.clients.s3, BUCKET, presigns=False)  # roto takes no presigned URLs
        self.doorbell = SqsDoorbell(self.clients.sqs, QUEUE_PREFIX)

    def prepare(self) -> None:
        """Creates table and bucket where they are missing. Raises `NoStore`."""
        deadline = time.monotonic() + PING_SECONDS
        while True:
            try:
                create_table(TABLE, self.settings)
                self.blobs.create_bucket(REGION)
                self.store.ping()
                return
            except (StoreUnavailable, PynamoDBException) as error:
                if time.monotonic() > deadline:
                    raise NoStore(f"no store answers at {self.settings.endpoint_url}: {error}") from None
            time.sleep(0.2)

    def context(self, orchestrator: Orchestrator, key: Key | None, *, remember: int = 0) -> Context:
        """The services' context; with a key, makes sure that it is known and the one of an earlier start is not.

        `remember`: sessions whose last state is kept between requests; for a process that does everything itself.

        Raises:
            KeyRefused: the key was revoked, or is that of an environment.
        """
        clock = SystemClock()
        ctx = Context(
            store=self.store,
            blobs=self.blobs,
            doorbell=LocalDoorbell(self.doorbell),
            orchestrator=orchestrator,
            clock=clock,
            ids=SystemIds(clock),
            recent=Recent(remember),
        )
        if key is not None:
            give_key(ctx, key.token)
            check_opens(ctx, key)
        return ctx


def _keep_loopback_off_proxies() -> None:
    """A proxy meant for the internet cannot reach this machine's loopback."""
    for name in ("NO_PROXY", "no_proxy"):
        known = [each for each in os.environ.get(name, "").split(",") if each]
        os.environ[name] = ",".join([*known, *(each for each in ("127.0.0.1", "localhost") if each not in known)])
