"""Counts what AWS would bill for what the ports are asked to do. Units as the price lists count them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from mango.domain.rules import INDEXES, item_size
from mango.domain.transaction import Item, Key, Put, Transaction, Write
from mango.memory import MemoryDoorbell, MemoryStore
from mango.ports import Page

WRITE_UNIT, READ_UNIT = 1024, 4096
TRANSACTIONAL = 2
"""A transaction of several items is billed twice; one of a single item goes as a plain write."""


@dataclass(slots=True)
class Counts:
    """What was done.

    Attributes:
        requests: that API Gateway passed on.
        calls: of Lambda functions.
        transitions: of the state machine; each state that is entered is one.
        executions: that were started.
        commits: transactions that were asked for, refused ones too.
        reads: requests that read the table.
        write_units: of DynamoDB, with those of its indexes.
        read_units: of DynamoDB.
        rings: messages sent to a queue.
    """

    requests: float = 0
    calls: float = 0
    transitions: float = 0
    executions: float = 0
    commits: float = 0
    reads: float = 0
    write_units: float = 0
    read_units: float = 0
    rings: float = 0

    def over(self, times: int) -> Counts:
        """For one of so many."""
        return Counts(**{each.name: getattr(self, each.name) / times for each in fields(self)})


class MeteredStore:
    """The in-memory table with a meter."""

    def __init__(self, store: MemoryStore, counts: Counts) -> None:
        self._store = store
        self._counts = counts
        self.on_commit = store.on_commit

    def commit(self, transaction: Transaction) -> None:
        before = [self._store.get(write.key) for write in transaction.writes]
        self._counts.commits += 1
        try:
            self._store.commit(transaction)
        finally:
            # Refused ones are billed too; what was read before stands for what would have been written.
            factor = TRANSACTIONAL if len(transaction.writes) > 1 else 1
            for write, old in zip(transaction.writes, before, strict=True):
                self._counts.write_units += self._written(write, old, factor)

    def _written(self, write: Write, old: Item | None, factor: int) -> int:
        new = self._store.get(write.key)
        if new is None and isinstance(write, Put):
            new = dict(write.item)
        sizes = [item_size(write.key, each) for each in (old, new) if each is not None]
        return factor * max(1, math.ceil(max(sizes, default=0) / WRITE_UNIT)) + _index_units(old or {}, new or {})

    def get(self, key: Key) -> Item | None:
        found = self._store.get(key)
        self._read([(key, found)])
        return found

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        found = self._store.get_many(keys)
        self._read(list(zip(keys, found, strict=True)))
        return found

    def query(self, pk: str, **given: Any) -> Page:
        page = self._store.query(pk, **given)
        self._queried(page, 1.0)
        return page

    def query_index(self, index: str, partition: str, **given: Any) -> Page:
        page = self._store.query_index(index, partition, **given)
        self._queried(page, 0.5)  # an index is never consistent
        return page

    def _read(self, found: Sequence[tuple[Key, Item | None]]) -> None:
        self._counts.reads += 1
        for key, item in found:
            self._counts.read_units += max(1, math.ceil(item_size(key, item or {}) / READ_UNIT))

    def _queried(self, page: Page, share: float) -> None:
        self._counts.reads += 1
        size = sum(item_size(key, item) for key, item in page.items)
        self._counts.read_units += share * max(1, math.ceil(size / READ_UNIT))


def _index_units(old: Item, new: Item) -> int:
    """An index takes one unit for an entry that comes or goes, and two for one that moves."""
    units = 0
    for partition, sort in INDEXES.values():
        entries = [tuple(each.get(name) for name in (partition, sort)) for each in (old, new)]
        if entries[0] != entries[1]:
            units += sum(None not in entry for entry in entries)
    return units


class MeteredDoorbell(MemoryDoorbell):
    """The bell with a meter."""

    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self._counts = counts

    def ring(self, environment_id: str, work_id: str) -> None:
        self._counts.rings += 1
        super().ring(environment_id, work_id)
