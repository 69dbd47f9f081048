"""Every kind of write, and that a transaction is applied whole or not at all."""

from __future__ import annotations

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
    Put,
    Refused,
    Transaction,
    Update,
    Write,
)
from tests.contract.backends import AnyStore


def commit(store: AnyStore, *writes: Write) -> None:
    store.commit(Transaction(writes))


def refused(store: AnyStore, *writes: Write) -> tuple[int, ...]:
    with pytest.raises(Refused) as caught:
        commit(store, *writes)
    return caught.value.indexes


def padded(writes: tuple[Write, ...], pk: str, size: int) -> tuple[Write, ...]:
    """More writes of other items behind them: adapters may treat a single write in another way."""
    return (*writes, *(Put(Key(pk, f"pad{n}"), {}, new=False) for n in range(size - len(writes))))


@pytest.mark.parametrize("size", [1, 2])
def test_put_new_twice_is_refused(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    commit(store, *padded((Put(key, {"n": 1}),), pk, size))
    assert refused(store, *padded((Put(key, {"n": 2}),), pk, size)) == (0,)
    assert store.get(key) == {"n": 1}


@pytest.mark.parametrize("size", [1, 2])
def test_put_overwrites_the_whole_item(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    commit(store, *padded((Put(key, {"old": 1, "n": 1}, new=False),), pk, size))
    commit(store, *padded((Put(key, {"n": 2}, new=False),), pk, size))
    assert store.get(key) == {"n": 2}


@pytest.mark.parametrize("size", [1, 2])
def test_put_under_conditions_looks_at_the_item_that_is_there(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    replace = Put(key, {"n": 2}, new=False, conditions=(Equals("n", 1),))
    assert refused(store, *padded((replace,), pk, size)) == (0,)
    commit(store, Put(key, {"n": 1}))
    commit(store, *padded((replace,), pk, size))
    assert store.get(key) == {"n": 2}
    assert refused(store, *padded((replace,), pk, size)) == (0,)


def test_put_new_with_conditions_that_a_missing_item_meets(store: AnyStore, pk: str) -> None:
    key = Key(pk, "a")
    put = Put(key, {"n": 1}, conditions=(Absent("n"), Differs("m", 1)))
    commit(store, put)
    assert refused(store, put) == (0,)


@pytest.mark.parametrize("size", [1, 2])
def test_update_changes_an_item_that_exists(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    commit(store, Put(key, {"kept": "k", "n": 1, "gone": True, "was": "old"}))
    update = Update(key, set={"was": "new", "size": [1]}, add={"n": 4, "fresh": -3}, remove=("gone", "never"))
    commit(store, *padded((update,), pk, size))
    assert store.get(key) == {"kept": "k", "n": 5, "fresh": -3, "was": "new", "size": [1]}


@pytest.mark.parametrize("size", [1, 2])
def test_update_of_a_missing_item_is_refused(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    for update in (Update(key, set={"n": 1}), Update(key, add={"n": 1}), Update(key, remove=("n",))):
        assert refused(store, *padded((update,), pk, size)) == (0,)
    assert refused(store, *padded((Update(key, set={"n": 1}, conditions=(Absent("n"),)),), pk, size)) == (0,)
    assert store.get(key) is None


@pytest.mark.parametrize("size", [1, 2])
def test_update_under_conditions(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    commit(store, Put(key, {"n": 1}))
    update = Update(key, set={"n": 2}, conditions=(Equals("n", 1), Absent("m")))
    commit(store, *padded((update,), pk, size))
    assert refused(store, *padded((update,), pk, size)) == (0,)


def test_a_condition_and_a_change_of_the_same_attribute(store: AnyStore, pk: str) -> None:
    key = Key(pk, "a")
    commit(store, Put(key, {"n": 1, "text": "x"}))
    commit(store, Update(key, add={"n": 1}, remove=("text",), conditions=(AtMost("n", 1), Equals("text", "x"))))
    assert store.get(key) == {"n": 2}


@pytest.mark.parametrize("size", [1, 2])
def test_delete(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    assert refused(store, *padded((Delete(key),), pk, size)) == (0,)
    commit(store, *padded((Delete(key, must_exist=False),), pk, size))
    commit(store, Put(key, {"n": 1}))
    commit(store, *padded((Delete(key),), pk, size))
    assert store.get(key) is None


@pytest.mark.parametrize("size", [1, 2])
def test_delete_under_conditions(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    conditions: tuple[Condition, ...] = (Equals("n", 1), Absent("m"))
    tolerant = Delete(key, must_exist=False, conditions=conditions)
    commit(store, *padded((tolerant,), pk, size))
    assert refused(store, *padded((Delete(key, conditions=conditions),), pk, size)) == (0,)
    commit(store, Put(key, {"n": 2}))
    assert refused(store, *padded((tolerant,), pk, size)) == (0,)
    commit(store, Update(key, set={"n": 1}))
    commit(store, *padded((tolerant,), pk, size))
    assert store.get(key) is None


@pytest.mark.parametrize("size", [1, 2])
def test_check(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    commit(store, *padded((Check(key, exists=False),), pk, size))
    assert refused(store, *padded((Check(key),), pk, size)) == (0,)
    commit(store, Put(key, {"n": 1}))
    commit(store, *padded((Check(key),), pk, size))
    commit(store, *padded((Check(key, (Above("n", 0),)),), pk, size))
    assert refused(store, *padded((Check(key, exists=False),), pk, size)) == (0,)
    assert refused(store, *padded((Check(key, (Above("n", 1),)),), pk, size)) == (0,)
    assert store.get(key) == {"n": 1}


def test_refused_names_every_write_that_failed_and_nothing_is_applied(store: AnyStore, pk: str) -> None:
    here: Item = {"n": 1}
    commit(store, Put(Key(pk, "here"), here), Put(Key(pk, "doomed"), here))
    indexes = refused(
        store,
        Put(Key(pk, "new"), {}),
        Put(Key(pk, "here"), {}),
        Delete(Key(pk, "doomed")),
        Update(Key(pk, "missing"), add={"n": 1}),
        Check(Key(pk, "absent"), exists=False),
        Check(Key(pk, "absent too")),
    )
    assert indexes == (1, 3, 5)
    assert store.query(pk).items == [(Key(pk, "doomed"), here), (Key(pk, "here"), here)]


def test_partitions_mix_in_a_transaction_of_a_hundred(store: AnyStore, pk: str) -> None:
    keys = [Key(f"{pk}.{n % 7}", f"i{n}") for n in range(100)]
    commit(store, *(Put(key, {"n": number}) for number, key in enumerate(keys)))
    assert store.get_many(keys) == [{"n": number} for number in range(100)]
    assert refused(store, *(Put(key, {}) for key in keys)) == tuple(range(100))
    commit(store, *(Delete(key) for key in keys))
    assert store.get_many(keys) == [None] * 100
