"""Random transactions have the same outcome on the twin and on what it imitates."""

from __future__ import annotations

import random

import pytest

from mango.domain.transaction import (
    Above,
    Absent,
    AtMost,
    Check,
    Condition,
    Delete,
    Differs,
    Equals,
    Item,
    Key,
    Present,
    Put,
    Refused,
    Transaction,
    Update,
    Value,
    Write,
)
from mango.memory import MemoryStore
from tests.contract.backends import AnyStore

NAMES = ("n", "m", "text")
VALUES: tuple[Value, ...] = (0, 1, 2, -5, 10**20)
TEXTS = ("", "a", "é")
INDEX: Item = {"due_shard": "", "due": "1"}


class Generator:
    """Writes over a few items, so that conditions meet what earlier transactions left."""

    def __init__(self, seed: int, pk: str) -> None:
        self._random = random.Random(seed)
        self._pk = pk

    def transaction(self) -> Transaction:
        keys = self._random.sample([Key(self._pk, f"i{n}") for n in range(5)], self._random.choice((1, 1, 2, 3)))
        return Transaction(tuple(self._write(key) for key in keys))

    def _write(self, key: Key) -> Write:
        choose = self._random
        conditions = tuple(self._condition() for _ in range(choose.choice((0, 0, 1, 2))))
        kind = choose.randrange(6)
        if kind < 2:
            return Put(key, self._item(), choose.random() < 0.5, conditions)
        if kind < 4:
            return self._update(key, conditions)
        if kind == 4:
            return Delete(key, choose.random() < 0.5, conditions)
        return Check(key, conditions, choose.random() < 0.7)

    def _update(self, key: Key, conditions: tuple[Condition, ...]) -> Update:
        roles = {name: self._random.choice(("set", "add", "remove", "")) for name in ("n", "m")}
        changed: Item = {name: self._value(name) for name, role in roles.items() if role == "set"}
        if self._random.random() < 0.5:
            changed |= self._index()
        removed = tuple(name for name, role in roles.items() if role == "remove")
        if not self._random.randrange(3):
            removed += tuple(name for name in INDEX if name not in changed)
        added = {name: self._random.choice((1, -1, 7)) for name, role in roles.items() if role == "add"}
        return Update(key, {**changed, "text": self._value("text")}, added, removed, conditions)

    def _item(self) -> Item:
        item: Item = {name: self._value(name) for name in NAMES if self._random.random() < 0.7}
        return item | self._index() if self._random.random() < 0.5 else item

    def _index(self) -> Item:
        return {"due_shard": f"{self._pk}{self._random.randrange(2)}", "due": str(self._random.randrange(4))}

    def _value(self, name: str) -> Value:
        return self._random.choice(TEXTS if name == "text" else VALUES)

    def _condition(self) -> Condition:
        name = self._random.choice(NAMES)
        bound = self._random.choice((-1, 0, 1))
        conditions: list[Condition] = [Equals(name, self._value(name)), Differs(name, self._value(name))]
        conditions += [Absent(name), Present(name)]
        if name != "text":
            conditions += [Above(name, bound), AtMost(name, bound)]
        return self._random.choice(conditions)


def outcome(store: AnyStore, transaction: Transaction) -> tuple[int, ...] | None:
    try:
        store.commit(transaction)
    except Refused as error:
        return error.indexes
    return None


def state(store: AnyStore, pk: str) -> list[object]:
    shards = [sorted(store.query_index("due", f"{pk}{n}").items, key=repr) for n in range(2)]
    return [store.query(pk).items, *shards]


@pytest.mark.parametrize("seed", range(4))
def test_random_transactions(store: AnyStore, pk: str, seed: int) -> None:
    twin = MemoryStore()
    generator = Generator(seed, pk)
    refused = 0
    for n in range(120):
        transaction = generator.transaction()
        expected = outcome(twin, transaction)
        assert (n, transaction, outcome(store, transaction)) == (n, transaction, expected)
        refused += expected is not None
        if n % 10 == 9:
            assert state(store, pk) == state(twin, pk)
    assert 20 < refused < 100  # otherwise this proves little
