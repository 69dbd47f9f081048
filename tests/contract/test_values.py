"""What is written is what is read, and belongs to nobody else."""

from __future__ import annotations

import json

import pytest

from mango.domain.transaction import Check, Equals, Item, Key, Put, Transaction, Update, Value
from tests.contract.backends import AnyStore

VALUES: list[Value] = [
    "",
    "plain",
    "ünïcödé 漢字 \U0001f96d\U0001f468‍\U0001f469‍\U0001f467",
    'line\nbreak\ttab "quote" back\\slash / \x00 \x1f \x7f \u2028',
    '{"json": [1.5, null]}',
    0,
    -1,
    2**63,
    10**38 - 1,
    -(10**38 - 1),
    10**20,
    True,
    False,
    None,
    [],
    {},
    [[], {}, "", None, False, 0],
    [1, "1", True, None, [2, [3, ["deep"]]]],
    {"a": {"b": {"c": [{"d": None}]}}, "é": "", "empty": {}},
]


@pytest.mark.parametrize("size", [1, 2])
def test_values_come_back_as_they_were(store: AnyStore, pk: str, size: int) -> None:
    item: Item = {f"v{n}": value for n, value in enumerate(VALUES)}
    first, second = Key(pk, "put"), Key(pk, "set")
    store.commit(Transaction((Put(first, item), Put(second, {}))))
    pad = tuple(Put(Key(pk, f"pad{n}"), {}) for n in range(size - 1))
    store.commit(Transaction((Update(second, set=item), *pad)))
    conditions = tuple(Equals(name, value) for name, value in item.items())
    for key in (first, second):
        found = store.get(key)
        assert found == item
        # To Python, but not in JSON, True is 1.
        assert json.dumps(found, sort_keys=True) == json.dumps(item, sort_keys=True)
        store.commit(Transaction((Check(key, conditions),)))


def test_an_item_may_be_empty(store: AnyStore, pk: str) -> None:
    store.commit(Transaction((Put(Key(pk, "a"), {}),)))
    assert store.get(Key(pk, "a")) == {}


def test_keys_may_be_any_text(store: AnyStore, pk: str) -> None:
    for sk in ("\U0001f96d", "a b", "ü#/?&=%", "x" * 1024, "\x01"):
        store.commit(Transaction((Put(Key(pk, sk), {"n": 1}),)))
        assert store.get(Key(pk, sk)) == {"n": 1}


def test_numbers_add_up_exactly(store: AnyStore, pk: str) -> None:
    key = Key(pk, "a")
    store.commit(Transaction((Put(key, {"n": 10**37}),)))
    store.commit(Transaction((Update(key, add={"n": 1}),)))
    store.commit(Transaction((Update(key, add={"n": -(10**37)}),)))
    assert store.get(key) == {"n": 1}


def test_nothing_is_shared_with_the_caller(store: AnyStore, pk: str) -> None:
    key = Key(pk, "a")
    inner: list[Value] = [1]
    item: Item = {"list": inner, "map": {"list": inner}}
    store.commit(Transaction((Put(key, item), Put(Key(pk, "b"), {}))))
    store.commit(Transaction((Update(Key(pk, "b"), set={"list": inner}),)))
    inner.append(2)
    item["more"] = 1
    whole: Item = {"list": [1], "map": {"list": [1]}}
    for _ in range(2):
        found = store.get(key)
        assert found == whole
        assert isinstance(found["list"], list)
        found["list"].append(3)
        ((_, queried),) = store.query(pk, prefix="a").items
        assert queried == whole
        queried["list"] = []
        assert store.get_many([key, key]) == [whole, whole]
        assert store.get(Key(pk, "b")) == {"list": [1]}


def test_get_many_answers_in_the_order_of_the_keys(store: AnyStore, pk: str) -> None:
    keys = [Key(pk, f"i{n:03d}") for n in range(230)]
    for start in range(0, 230, 100):
        batch = keys[start : start + 100]
        store.commit(Transaction(tuple(Put(key, {"sk of": key.sk}) for key in batch)))
    asked = [Key(pk, "none"), *reversed(keys), keys[3], Key("other", keys[0].sk), keys[3]]
    expected: list[Item | None] = [{"sk of": key.sk} if key in keys else None for key in asked]
    assert store.get_many(asked) == expected
    assert store.get_many([]) == []
    assert store.get_many([keys[7]]) == [{"sk of": "i007"}]


def test_get_many_items_asked_for_twice_are_separate(store: AnyStore, pk: str) -> None:
    key = Key(pk, "a")
    store.commit(Transaction((Put(key, {"list": [1]}),)))
    first, second = store.get_many([key, key])
    assert first is not None
    assert second is not None
    assert isinstance(first["list"], list)
    first["list"].append(2)
    assert second == {"list": [1]}
