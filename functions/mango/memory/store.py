"""The strict in-memory twin of the table: interprets the same transactions, stricter than any emulator."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence

from mango.domain.rules import INDEXES, check_key, check_total, check_transaction, item_size
from mango.domain.transaction import (
    Ambiguous,
    Delete,
    Item,
    Key,
    Put,
    Refused,
    StoreUnavailable,
    Transaction,
    Update,
    Write,
)
from mango.memory.faults import Fault, Faults
from mango.memory.rows import Place, Row, Rows
from mango.memory.values import copy_item, copy_value, permits, updated
from mango.ports import Page

PAGE_BYTES = 1024 * 1024
"""A query stops before it would read more."""


class MemoryStore:
    """A `Store` in memory. Thread-safe; every commit is applied at one instant.

    Listeners in `on_commit` are called in the committing thread, without the lock, after a commit that was applied
    and answered; never for an ambiguous one, of which a real adapter knows nothing either: those in `on_ambiguous` are,
    before it is raised. They must not raise.
    """

    def __init__(self, faults: Faults | None = None) -> None:
        self.faults = faults
        self.on_commit: list[Callable[[Transaction], None]] = []
        self.on_ambiguous: list[Callable[[Transaction], None]] = []
        self._rows = Rows()
        self._late: list[Transaction] = []
        self._lock = threading.Lock()

    def commit(self, transaction: Transaction) -> None:
        """Applies the transaction whole, or raises (see `mango.ports.Store`)."""
        check_transaction(transaction)
        fault = self.faults.decide(transaction) if self.faults is not None else Fault.NONE
        if fault is Fault.UNAVAILABLE:
            raise StoreUnavailable("the store refused the request")
        if fault is not Fault.NONE:
            self._suffer(fault, transaction)
            for listener in tuple(self.on_ambiguous):
                listener(transaction)
            raise Ambiguous("the answer was lost")
        with self._lock:
            self._apply(transaction)
        for listener in tuple(self.on_commit):
            listener(transaction)

    def _suffer(self, fault: Fault, transaction: Transaction) -> None:
        if fault is Fault.LATE:
            # Caller's values may change until it is delivered; a request on the wire does not.
            frozen = _frozen(transaction)
            with self._lock:
                self._late.append(frozen)
        elif fault is Fault.ANSWER_LOST:
            self._try(transaction)

    @property
    def late(self) -> tuple[Transaction, ...]:
        """Transactions on their way, oldest first."""
        with self._lock:
            return tuple(self._late)

    def deliver_late(self, position: int | None = None) -> int:
        """Tries the late transactions, or the one at `position`; returns how many were applied."""
        with self._lock:
            if position is None:
                delivered, self._late = self._late, []
            else:
                delivered = [self._late.pop(position)]
        return sum(self._try(transaction) for transaction in delivered)

    def _try(self, transaction: Transaction) -> bool:
        with self._lock:
            try:
                self._apply(transaction)
            except Refused:
                return False
            return True

    def _apply(self, transaction: Transaction) -> None:
        rows = [self._rows.get(write.key) for write in transaction.writes]
        refused = tuple(
            index
            for index, (write, row) in enumerate(zip(transaction.writes, rows, strict=True))
            if not permits(write, row.item if row else None)
        )
        if refused:
            raise Refused(refused)
        results = [_result(write, row) for write, row in zip(transaction.writes, rows, strict=True)]
        check_total(max(_size(old), _size(new)) for old, new in zip(rows, results, strict=True))
        for write, old, new in zip(transaction.writes, rows, results, strict=True):
            if new is not old:
                self._rows.replace(write.key, new)

    def get(self, key: Key) -> Item | None:
        """A copy of the item."""
        check_key(key)
        with self._lock:
            row = self._rows.get(key)
            return None if row is None else copy_item(row.item)

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """Copies in the order of the keys; each is read by itself, as in a batch that is not a transaction."""
        return [self.get(key) for key in keys]

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
        """See `mango.ports.Store.query`. A page that ends at its limit has a `next` even if nothing follows."""
        check_key(Key(pk, "-"))
        _check_limit(limit)
        with self._lock:
            chosen = self._rows.sort_keys(pk, prefix, after, before)
            items: list[tuple[Key, Item]] = []
            size = 0
            for sk in reversed(chosen) if descending else chosen:
                key = Key(pk, sk)
                row = self._rows.get(key)
                assert row is not None
                size += row.size
                if items and (size > PAGE_BYTES or len(items) == limit):
                    return Page(items, items[-1][0].sk)
                items.append((key, copy_item(row.item)))
        return Page(items, items[-1][0].sk if len(items) == limit else None)

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
        """See `mango.ports.Store.query_index`; here an index is never behind."""
        names = INDEXES[index]
        check_key(Key(partition, "-"))
        _check_limit(limit)
        with self._lock:
            places = self._rows.places(index, partition)
        chosen = [
            place
            for place in places
            if (at_most is None or place.value <= at_most) and (above is None or place.value > above)
        ]
        if descending:
            chosen.reverse()
        if start is not None:
            passed = Place(*json.loads(start))
            chosen = [place for place in chosen if (place < passed if descending else place > passed)]
        found = chosen[:limit]
        items = [(Key(pk, sk), _index_item(names, partition, value)) for value, pk, sk in found]
        return Page(items, json.dumps(found[-1]) if found and len(found) == limit else None)

    def dump(self) -> dict[Key, Item]:
        """A copy of everything, for invariants."""
        with self._lock:
            return {key: copy_item(row.item) for key, row in self._rows.dump().items()}


def _result(write: Write, row: Row | None) -> Row | None:
    if isinstance(write, Put):
        return Row(copy_item(write.item), item_size(write.key, write.item))
    if isinstance(write, Update):
        assert row is not None
        item = updated(row.item, write)
        return Row(item, item_size(write.key, item))
    return None if isinstance(write, Delete) else row


def _size(row: Row | None) -> int:
    return 0 if row is None else row.size


def _index_item(names: tuple[str, str], partition: str, value: str) -> Item:
    return {names[0]: partition, names[1]: value}


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise ValueError("a limit must be at least 1")


def _frozen(transaction: Transaction) -> Transaction:
    return Transaction(tuple(_frozen_write(write) for write in transaction.writes))


def _frozen_write(write: Write) -> Write:
    if isinstance(write, Put):
        return Put(write.key, copy_item(write.item), write.new, write.conditions)
    if isinstance(write, Update):
        changes = {name: copy_value(value) for name, value in write.set.items()}
        return Update(write.key, changes, dict(write.add), write.remove, write.conditions)
    return write
