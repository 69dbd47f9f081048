"""Each condition against each kind of value: what is missing, null, equal, of another type."""

from __future__ import annotations

import pytest

from mango.domain.transaction import (
    Above,
    Absent,
    AtMost,
    Check,
    Condition,
    Differs,
    Equals,
    Item,
    Key,
    Present,
    Put,
    Refused,
    Transaction,
    Value,
)
from tests.contract.backends import AnyStore, Backend

ITEM: Item = {
    "five": 5,
    "text": "five",
    "empty": "",
    "null": None,
    "yes": True,
    "no": False,
    "list": [1, "a", None, [True]],
    "map": {"x": {"y": 1}, "z": []},
}

MET: list[Condition] = [
    *(Equals(name, value) for name, value in ITEM.items()),
    *(Present(name) for name in ITEM),
    Absent("other"),
    Differs("other", 5),
    Differs("other", None),
    Differs("five", 6),
    Differs("five", "5"),
    Differs("five", None),
    Differs("null", ""),
    Differs("null", False),
    Differs("list", [1, "a", None]),
    Differs("map", {"x": {"y": 1}}),
    Above("five", 4),
    Above("five", -(10**30)),
    AtMost("five", 5),
    AtMost("five", 10**30),
]

FAILED: list[Condition] = [
    *(Differs(name, value) for name, value in ITEM.items()),
    *(Absent(name) for name in ITEM),
    Present("other"),
    Equals("other", 5),
    Equals("five", 6),
    Equals("five", "5"),
    Equals("null", ""),
    Equals("null", False),
    Equals("yes", "True"),
    Equals("no", None),
    Equals("empty", None),
    Equals("list", [1, None, "a", [True]]),
    Equals("list", []),
    Equals("map", {}),
    Above("five", 5),
    Above("other", -1),
    AtMost("five", 4),
    AtMost("other", 10),
]

LOOKALIKES: dict[str, Value] = {
    "other": None,
    "yes": 1,
    "no": 0,
    "list": [1, "a", None, [1]],
    "map": {"x": {"y": True}, "z": []},
}

OTHER_TYPES: list[Condition] = [
    condition for name in ("text", "empty", "null", "yes", "list") for condition in (Above(name, -1), AtMost(name, 10))
]


def holds(store: AnyStore, key: Key, condition: Condition) -> bool:
    try:
        store.commit(Transaction((Check(key, (condition,)), Put(Key(key.pk, "log"), {}, new=False))))
    except Refused as error:
        assert error.indexes == (0,)
        return False
    return True


@pytest.fixture
def key(store: AnyStore, pk: str) -> Key:
    store.commit(Transaction((Put(Key(pk, "item"), ITEM),)))
    return Key(pk, "item")


def test_conditions_that_are_met(store: AnyStore, key: Key) -> None:
    assert [condition for condition in MET if not holds(store, key, condition)] == []


def test_conditions_that_are_not(store: AnyStore, key: Key) -> None:
    assert [condition for condition in FAILED if holds(store, key, condition)] == []


@pytest.mark.parametrize("name", LOOKALIKES)
def test_equality_tells_types_and_missing_from_null(backend: Backend, key: Key, name: str) -> None:
    backend.lacks("moto", "takes True for 1, False for 0 and a missing attribute for null")
    assert not holds(backend.store, key, Equals(name, LOOKALIKES[name]))
    assert holds(backend.store, key, Differs(name, LOOKALIKES[name]))


def test_only_numbers_are_compared(backend: Backend, key: Key) -> None:
    backend.lacks("moto", "cancels a comparison of two types with the reason TypeError")
    assert [condition for condition in OTHER_TYPES if holds(backend.store, key, condition)] == []


def test_numbers_beyond_floats_are_compared_exactly(store: AnyStore, pk: str) -> None:
    key = Key(pk, "big")
    big = 10**37 + 1
    store.commit(Transaction((Put(key, {"n": big}),)))
    assert holds(store, key, Equals("n", big))
    assert not holds(store, key, Equals("n", big - 1))
    assert holds(store, key, Above("n", big - 1))
    assert not holds(store, key, Above("n", big))
    assert not holds(store, key, AtMost("n", big - 1))


def test_all_conditions_of_a_write_must_be_met(store: AnyStore, key: Key) -> None:
    for conditions in ((Equals("five", 5), Absent("five")), (Absent("five"), Equals("five", 5))):
        with pytest.raises(Refused):
            store.commit(Transaction((Check(key, conditions),)))
    store.commit(Transaction((Check(key, (Differs("other", 1), Equals("five", 5), Above("five", 1))),)))


@pytest.mark.parametrize("name", ["status", "size", "a.b", "with space", "#hash", ":colon", "é", "0", "Name"])
def test_any_attribute_name_is_safe(store: AnyStore, pk: str, name: str) -> None:
    key = Key(pk, "names")
    value: Value = "v"
    store.commit(Transaction((Put(key, {name: value}),)))
    assert holds(store, key, Equals(name, value))
    assert store.get(key) == {name: value}
