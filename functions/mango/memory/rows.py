"""The rows of the in-memory table and its indexes, kept in order. Not thread-safe by itself."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from mango.domain.rules import INDEXES
from mango.domain.transaction import Item, Key


class Row(NamedTuple):
    """A stored item and the bytes that count for it."""

    item: Item
    size: int


class Place(NamedTuple):
    """A place in an index: value of the sort attribute, then the item's key."""

    value: str
    pk: str
    sk: str


class Rows:
    """Items by key, sort keys in order, index entries in order."""

    def __init__(self) -> None:
        self._rows: dict[Key, Row] = {}
        self._sorted: defaultdict[str, list[str]] = defaultdict(list)
        self._indexes: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)

    def get(self, key: Key) -> Row | None:
        return self._rows.get(key)

    def replace(self, key: Key, row: Row | None) -> None:
        """Stores the row, or removes the one that is there."""
        old = self._rows.pop(key, None)
        if old is not None:
            self._unindex(key, old.item)
        if row is not None:
            self._rows[key] = row
            self._index(key, row.item)
        if (old is None) == (row is None):
            return
        keys = self._sorted[key.pk]
        if row is not None:
            insort(keys, key.sk)
        else:
            del keys[bisect_left(keys, key.sk)]

    def sort_keys(self, pk: str, prefix: str, after: str | None, before: str | None) -> list[str]:
        """Sort keys with the prefix, strictly between the bounds, in order."""
        keys = self._sorted.get(pk, [])
        start = bisect_left(keys, prefix)
        end = bisect_right(keys, prefix, lo=start, key=lambda sk: sk[: len(prefix)])
        if after is not None:
            start = max(start, bisect_right(keys, after))
        if before is not None:
            end = min(end, bisect_left(keys, before))
        return keys[start:end]

    def places(self, index: str, partition: str) -> list[Place]:
        """A copy of an index partition, in order."""
        return list(self._indexes.get((index, partition), ()))

    def dump(self) -> dict[Key, Row]:
        """All rows, by key."""
        return dict(self._rows)

    def _index(self, key: Key, item: Item) -> None:
        for entry, place in _entries(key, item):
            insort(self._indexes[entry], place)

    def _unindex(self, key: Key, item: Item) -> None:
        for entry, place in _entries(key, item):
            places = self._indexes[entry]
            del places[bisect_left(places, place)]


def _entries(key: Key, item: Item) -> Iterator[tuple[tuple[str, str], Place]]:
    """Where the item appears; an item that lacks one of an index's attributes is not in that index."""
    for index, (partition_name, sort_name) in INDEXES.items():
        partition, value = item.get(partition_name), item.get(sort_name)
        if isinstance(partition, str) and isinstance(value, str):
            yield (index, partition), Place(value, key.pk, key.sk)
