"""The table on DynamoDB or what stands in for it: translates transactions and holds no rule of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from mango.aws import queries
from mango.aws.expressions import translate
from mango.aws.failures import Busy, commit_failure, read_failure
from mango.aws.serial import Attribute, decode_item, decode_key, encode_key
from mango.domain.rules import check_key, check_transaction
from mango.domain.transaction import Ambiguous, Item, Key, Put, StoreUnavailable, Transaction, Write
from mango.ports import Page

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_T = TypeVar("_T")

_BATCH_KEYS = 100
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.8
_READ_SECONDS = 5.0
"""No read is tried again later than this after its first try began."""
_FENCE = Key("FENCE", "PING")


class DynamoStore:
    """A `Store` on a table that `mango.aws.table` declares.

    Listeners in `on_commit` are called in the committing thread after a commit that is known to be applied, those in
    `on_ambiguous` after one of which that is not known, before it is raised. They must not raise.

    Args:
        client: made by `mango.aws.clients`, which matters: it must not repeat requests by itself.
        table: name of the table.
        attempts: how often a request that was certainly not carried out is made before `StoreUnavailable`.
        sleep: for tests.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        *,
        attempts: int = 8,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.on_commit: list[Callable[[Transaction], None]] = []
        self.on_ambiguous: list[Callable[[Transaction], None]] = []
        self._client = client
        self._table = table
        self._attempts = attempts
        self._sleep = sleep

    def commit(self, transaction: Transaction) -> None:
        """Applies the transaction whole, or raises (see `mango.ports.Store`)."""
        check_transaction(transaction)
        try:
            self._commit(transaction.writes)
        except Ambiguous:
            for listener in tuple(self.on_ambiguous):
                listener(transaction)
            raise
        for listener in tuple(self.on_commit):
            listener(transaction)

    def _commit(self, writes: tuple[Write, ...]) -> None:
        requests = [translate(self._table, write) for write in writes]
        for attempt in range(self._attempts):
            try:
                self._send(requests)
                return
            except (ClientError, BotoCoreError) as error:
                failure = commit_failure(error)
                if not isinstance(failure, Busy):
                    raise failure from error
            self._pause(attempt)
        raise StoreUnavailable("the table is too busy")

    def _send(self, requests: list[tuple[str, dict[str, Any]]]) -> None:
        if len(requests) == 1:
            # The same rules at half the price; as fast as a transaction of one on roto.
            operation, request = requests[0]
            if operation == "Put":
                self._client.put_item(**request)
                return
            if operation == "Update":
                self._client.update_item(**request)
                return
            if operation == "Delete":
                self._client.delete_item(**request)
                return
        items: Any = [{operation: request} for operation, request in requests]
        self._client.transact_write_items(TransactItems=items)

    def get(self, key: Key) -> Item | None:
        """The item, strongly consistent."""
        check_key(key)
        request: Any = {"TableName": self._table, "Key": encode_key(key), "ConsistentRead": True}
        item: Any = self._read(partial(self._client.get_item, **request)).get("Item")
        return None if item is None else decode_item(item)

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """The items in the order of the keys, by as few requests as possible."""
        for key in keys:
            check_key(key)
        if len(keys) == 1:
            return [self.get(keys[0])]
        distinct = list(dict.fromkeys(keys))
        found: dict[Key, dict[str, Attribute]] = {}
        for start in range(0, len(distinct), _BATCH_KEYS):
            self._get_batch(distinct[start : start + _BATCH_KEYS], found)
        # Decoded for each key that was asked for: one asked for twice gives two items, which the caller may change.
        return [decode_item(found[key]) if key in found else None for key in keys]

    def _get_batch(self, keys: list[Key], found: dict[Key, dict[str, Attribute]]) -> None:
        wanted: Any = {"Keys": [encode_key(key) for key in keys], "ConsistentRead": True}
        idle = 0
        while wanted:
            answer: Any = self._read(partial(self._client.batch_get_item, RequestItems={self._table: wanted}))
            items = answer.get("Responses", {}).get(self._table, [])
            found.update((decode_key(item), item) for item in items)
            wanted = answer.get("UnprocessedKeys", {}).get(self._table)
            idle = 0 if items else idle + 1
            if wanted and idle:
                if idle >= self._attempts:
                    raise StoreUnavailable("the table is too busy")
                self._pause(idle)

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        descending: bool = False,
    ) -> Page:
        """See `mango.ports.Store.query`."""
        check_key(Key(pk, "-"))
        span = queries.span(prefix, after, before)
        if span is None:
            return Page([], None)
        request = queries.partition_request(self._table, pk, span, queries.checked(limit), descending)
        items, stopped_at = self._query(request, span.excluded)
        page = items[:limit]
        return Page(page, page[-1][0].sk if stopped_at or len(page) < len(items) else None)

    def query_index(
        self,
        index: str,
        partition: str,
        *,
        at_most: str | None = None,
        above: str | None = None,
        limit: int | None = None,
        descending: bool = False,
        start: str | None = None,
    ) -> Page:
        """See `mango.ports.Store.query_index`. `Page.next` is the index's own continuation key, as JSON."""
        check_key(Key(partition, "-"))
        if at_most is not None and above is not None and at_most <= above:
            return Page([], None)
        request = queries.index_request(self._table, index, partition, at_most, above)
        request["ScanIndexForward"] = not descending
        if queries.checked(limit) is not None:
            request["Limit"] = limit
        if start is not None:
            request["ExclusiveStartKey"] = queries.read_start(start)
        items, stopped_at = self._query(request, None)
        return Page(items, queries.write_start(stopped_at) if stopped_at else None)

    def _query(
        self, request: dict[str, Any], excluded: str | None
    ) -> tuple[list[tuple[Key, Item]], Mapping[str, Attribute] | None]:
        """One page and the key it stopped at. While a page is empty but not the last, it is followed by the next."""
        while True:
            answer: Any = self._read(partial(self._client.query, **request))
            found = [(decode_key(attributes), decode_item(attributes)) for attributes in answer["Items"]]
            items = [(key, item) for key, item in found if key.sk != excluded]
            stopped_at = answer.get("LastEvaluatedKey")
            if items or not stopped_at:
                return items, stopped_at
            request["ExclusiveStartKey"] = stopped_at

    def ping(self) -> None:
        """Writes and reads an item; raises `StoreUnavailable` unless both work."""
        try:
            self._commit((Put(_FENCE, {"at": time.time_ns()}, new=False),))
        except Ambiguous as error:
            raise StoreUnavailable(str(error)) from error
        if self.get(_FENCE) is None:
            raise StoreUnavailable("what was written cannot be read")

    def _read(self, call: Callable[[], _T]) -> _T:
        began = time.monotonic()
        for attempt in range(self._attempts):
            try:
                return call()
            except (ClientError, BotoCoreError) as error:
                failure = read_failure(error)
                if not isinstance(failure, Busy):
                    raise failure from error
                if time.monotonic() - began > _READ_SECONDS:
                    raise StoreUnavailable(str(error)) from error
            self._pause(attempt)
        raise StoreUnavailable("the table does not answer")

    def _pause(self, attempt: int) -> None:
        """Sleeps for a random time that grows, so that rivals do not meet again."""
        self._sleep(random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)))  # noqa: S311 - not a secret
