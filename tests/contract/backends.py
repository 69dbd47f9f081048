"""What the contract tests run on: the in-memory twin, moto and roto, each behind the same ports."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from moto import mock_aws

from mango.aws.blobs import S3Blobs
from mango.aws.clients import Clients
from mango.aws.store import DynamoStore
from mango.aws.table import create_table
from mango.memory import MemoryBlobs, MemoryStore
from mango.ports import Blobs

TABLE = "mango-contract"
BUCKET = "mango-contract"

AnyStore = MemoryStore | DynamoStore


@dataclass(frozen=True)
class Backend:
    """A store and blobs, and what they stand on. `clients` is None for the twin."""

    name: str
    store: AnyStore
    blobs: Blobs
    clients: Clients | None = None

    def lacks(self, name: str, what: str) -> None:
        """Skips the rest of this case if the backend is the one that differs from the contract."""
        if self.name == name:
            pytest.skip(f"{name} {what}")


class Serialized:
    """A client whose calls are made one at a time: moto's transactions lose writes under threads."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()

    def __getattr__(self, operation: str) -> Any:
        call = getattr(self._client, operation)

        def serialized(**parameters: Any) -> Any:
            with self._lock:
                return call(**parameters)

        return serialized


def twin() -> Backend:
    """Everything in memory."""
    return Backend("twin", MemoryStore(), MemoryBlobs())


def prepare(clients: Clients) -> None:
    """Makes the table and the bucket."""
    create_table(TABLE, clients.settings)
    S3Blobs(clients.s3, BUCKET).create_bucket(clients.settings.region)


def on_roto(clients: Clients) -> Backend:
    """A server that `prepare` has seen."""
    return Backend("roto", DynamoStore(clients.dynamodb, TABLE), S3Blobs(clients.s3, BUCKET), clients)


class Moto:
    """A fresh moto. Its data stay between uses; what is not moto's is reached only outside of `running`."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        mock = mock_aws()
        mock.start(reset=True)
        prepare(clients)
        mock.stop(remove_data=False)

    @contextmanager
    def running(self) -> Iterator[Backend]:
        """A backend, whose store takes one call at a time."""
        mock = mock_aws()
        mock.start(reset=False)
        store = DynamoStore(cast(Any, Serialized(self._clients.dynamodb)), TABLE)
        yield Backend("moto", store, S3Blobs(self._clients.s3, BUCKET), self._clients)
        mock.stop(remove_data=False)
