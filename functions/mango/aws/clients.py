"""AWS clients, made once a process: making one takes tens of milliseconds, using one is thread-safe.

They are botocore's own, which are those that boto3 gives out; what boto3 adds (resources, transfers in threads) is not
used here, and importing it would take a tenth of the API function's start.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.config import Config

from mango.aws.integrity import check_answers

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Where AWS, or what stands in for it, is.

    Attributes:
        region: name of the region.
        endpoint_url: of the stand-in; None is AWS itself.
        pool: connections kept per service; should be at least the number of threads that use one.
        access_key_id: credentials of a stand-in that checks none; None leaves it to boto3's usual sources.
        secret_access_key: belongs to `access_key_id`.
        connect_seconds: how long connecting may take.
        read_seconds: how long an answer may take.
    """

    region: str = "us-east-1"
    endpoint_url: str | None = None
    pool: int = 64
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    connect_seconds: float = 2.0
    read_seconds: float = 10.0


class Clients:
    """The clients of one process; each is made when it is first asked for."""

    def __init__(self, settings: AwsSettings) -> None:
        self.settings = settings
        self._made: dict[str, Any] = {}
        # Sessions are not thread-safe, so all making happens under the lock.
        self._lock = threading.Lock()
        self._session = botocore.session.Session()
        if settings.access_key_id is not None and settings.secret_access_key is not None:
            self._session.set_credentials(settings.access_key_id, settings.secret_access_key)

    @property
    def dynamodb(self) -> DynamoDBClient:
        """Never repeats a request: a transaction repeated after it was applied would look refused.

        Parameters are not validated by botocore, which takes long for it; `mango.domain.rules` does.
        """
        client: DynamoDBClient = self._client("dynamodb", attempts=1, parameter_validation=False)
        return client

    @property
    def s3(self) -> S3Client:
        """Repeats requests; every request made of it can be."""
        client: S3Client = self._client("s3", attempts=3)
        return client

    @property
    def sqs(self) -> SQSClient:
        """Tries twice: a ring may be lost, and nobody should wait for it."""
        client: SQSClient = self._client("sqs", attempts=2)
        return client

    def other(self, service: str, *, attempts: int = 3) -> Any:
        """A client of any other service, made with the same settings."""
        return self._client(service, attempts=attempts)

    def close(self) -> None:
        """Closes the connections. The clients cannot be used any more."""
        with self._lock:
            made, self._made = self._made, {}
        for client in made.values():
            client.close()

    def _client(self, service: str, *, attempts: int, parameter_validation: bool = True) -> Any:
        with self._lock:
            if service not in self._made:
                config = Config(
                    connect_timeout=self.settings.connect_seconds,
                    read_timeout=self.settings.read_seconds,
                    max_pool_connections=self.settings.pool,
                    retries={"mode": "standard", "total_max_attempts": attempts},
                    parameter_validation=parameter_validation,
                    tcp_keepalive=True,
                    # Presigned URLs: not signed by version 2, and with the bucket's region in their host, since a
                    # redirect from the global one would break the signature.
                    signature_version="s3v4" if service == "s3" else None,
                    s3={"addressing_style": "path" if self.settings.endpoint_url else "virtual"},
                )
                client: Any = self._session.create_client(
                    service, self.settings.region, endpoint_url=self.settings.endpoint_url, config=config
                )
                if service != "s3":  # whose answers to HEAD have a length without a content
                    check_answers(client)
                self._made[service] = client
            return self._made[service]
