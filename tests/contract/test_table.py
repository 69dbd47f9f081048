"""The table and the bucket: made once, by whoever comes first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mango.aws.blobs import S3Blobs
from mango.aws.clients import Clients
from mango.aws.store import DynamoStore
from mango.aws.table import create_table
from mango.domain.rules import INDEXES
from tests.contract.backends import BUCKET, TABLE, Backend


def keys_of(description: Any) -> list[tuple[str, str]]:
    return [(key["AttributeName"], key["KeyType"]) for key in description["KeySchema"]]


def test_what_is_declared(backend: Backend) -> None:
    backend.lacks("twin", "has no table")
    assert backend.clients is not None
    dynamodb = backend.clients.dynamodb
    table: Any = dynamodb.describe_table(TableName=TABLE)["Table"]
    assert keys_of(table) == [("pk", "HASH"), ("sk", "RANGE")]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    indexes = {index["IndexName"]: index for index in table["GlobalSecondaryIndexes"]}
    assert {name: keys_of(index) for name, index in indexes.items()} == {
        name: [(partition, "HASH"), (sort, "RANGE")] for name, (partition, sort) in INDEXES.items()
    }
    assert all(index["Projection"] == {"ProjectionType": "KEYS_ONLY"} for index in indexes.values())
    expiry = dynamodb.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
    assert (expiry["TimeToLiveStatus"], expiry["AttributeName"]) == ("ENABLED", "ttl")


def test_making_them_again_changes_nothing(backend: Backend) -> None:
    backend.lacks("twin", "has no table")
    assert backend.clients is not None
    create_table(TABLE, backend.clients.settings)
    S3Blobs(backend.clients.s3, BUCKET).create_bucket("us-east-1")


def test_many_make_them_at_once(roto_clients: Clients, pk: str) -> None:
    name = f"table-{pk[2:10]}"
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: create_table(name, roto_clients.settings), range(6)))
        list(pool.map(lambda _: S3Blobs(roto_clients.s3, name).create_bucket("us-east-1"), range(6)))
    DynamoStore(roto_clients.dynamodb, name).ping()


def test_ping(backend: Backend) -> None:
    if isinstance(backend.store, DynamoStore):
        backend.store.ping()
        backend.store.ping()
