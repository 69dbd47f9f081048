"""What no store takes: too large, or a mistake of the program. Nothing is written then, nor may it be ambiguous."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mango.domain.transaction import (
    Above,
    Check,
    Delete,
    Equals,
    Item,
    Key,
    Put,
    TooLarge,
    Transaction,
    Update,
    Write,
)
from tests.contract.backends import AnyStore, Backend

KB = 1024


def commit(store: AnyStore, *writes: Write) -> None:
    store.commit(Transaction(writes))


def exactly(key: Key, size: int) -> Item:
    """An item for which DynamoDB counts so many bytes: names and UTF-8, the key included."""
    return {"é": "x" * (size - len("pksk") - len(key.pk) - len(key.sk) - 2)}


def test_an_item_of_400_kb_and_not_a_byte_more(backend: Backend, pk: str) -> None:
    key, store = Key(pk, "a"), backend.store
    with pytest.raises(TooLarge):
        commit(store, Put(key, exactly(key, 400 * KB + 1)))
    assert store.get(key) is None
    backend.lacks("moto", "measures an item's JSON")
    commit(store, Put(key, exactly(key, 400 * KB)))
    assert store.get(key) == exactly(key, 400 * KB)


def test_size_counts_bytes_not_characters(store: AnyStore, pk: str) -> None:
    with pytest.raises(TooLarge):
        commit(store, Put(Key(pk, "a"), {"text": "\U0001f96d" * (101 * KB)}))


@pytest.mark.parametrize("size", [1, 2])
def test_an_update_may_not_make_an_item_too_large(backend: Backend, pk: str, size: int) -> None:
    key, store = Key(pk, "a"), backend.store
    commit(store, Put(key, {"first": "x" * 300 * KB}))
    pad = tuple(Put(Key(pk, "b"), {}) for _ in range(size - 1))
    with pytest.raises(TooLarge):
        commit(store, *pad, Update(key, set={"second": "x" * 150 * KB}))
    assert store.get(key) == {"first": "x" * 300 * KB}
    assert store.get(Key(pk, "b")) is None
    backend.lacks("moto", "counts what an update removes too")
    commit(store, Update(key, set={"second": "x" * 150 * KB}, remove=("first",)))
    assert store.get(key) == {"second": "x" * 150 * KB}


def test_a_transaction_of_four_megabytes(store: AnyStore, pk: str) -> None:
    keys = [Key(pk, f"{n:02d}") for n in range(11)]
    with pytest.raises(TooLarge):
        commit(store, *(Put(key, exactly(key, 390 * KB)) for key in keys))
    assert store.query(pk).items == []


def test_a_transaction_of_more_than_a_hundred(store: AnyStore, pk: str) -> None:
    with pytest.raises(TooLarge):
        commit(store, *(Put(Key(pk, str(n)), {}) for n in range(101)))
    assert store.query(pk).items == []


A, B = Key("p", "a"), Key("p", "b")
DEEP: Any = 1
for _ in range(33):
    DEEP = [DEEP]

MISTAKES: dict[str, tuple[Write, ...]] = {
    "nothing": (),
    "key twice": (Put(A, {}), Delete(A)),
    "empty partition key": (Put(Key("", "a"), {}),),
    "empty sort key": (Delete(Key("p", ""), must_exist=False),),
    "key not a text": (Check(Key("p", cast(Any, 1))),),
    "long partition key": (Put(Key("p" * 2049, "a"), {}),),
    "long sort key": (Put(Key("p", "é" * 513), {}),),
    "float": (Put(A, {"n": cast(Any, 1.5)}),),
    "nested float": (Put(A, {"n": [{"m": cast(Any, 1.5)}]}),),
    "bytes": (Put(A, {"n": cast(Any, b"x")}),),
    "tuple": (Put(A, {"n": cast(Any, (1,))}),),
    "set": (Put(A, {"n": cast(Any, {1})}),),
    "39 digits": (Put(A, {"n": 10**38}),),
    "39 digits below": (Update(A, set={"n": -(10**38)}),),
    "39 digits added": (Update(A, add={"n": 10**38}),),
    "39 digits compared": (Check(A, (Above("n", 10**38),)),),
    "too deep": (Put(A, {"n": DEEP}),),
    "half a character": (Put(A, {"n": "\ud83d"}),),
    "half a character in a key": (Put(Key("p", "\ud83d"), {}),),
    "member not a text": (Put(A, {"n": cast(Any, {1: 1})}),),
    "key among the attributes": (Put(A, {"pk": "p"}),),
    "key changed": (Update(A, set={"sk": "b"}),),
    "key removed": (Update(A, remove=("sk",)),),
    "attribute without a name": (Put(A, {"": 1}),),
    "update of nothing": (Update(A),),
    "attribute changed twice": (Update(A, set={"n": 1}, remove=("n",)),),
    "attribute removed twice": (Update(A, remove=("n", "n")),),
    "float added": (Update(A, add={"n": cast(Any, 0.5)}),),
    "bool added": (Update(A, add={"n": True}),),
    "float compared": (Check(A, (Above("n", cast(Any, 0.5)),)),),
    "condition on a float": (Check(A, (Equals("n", cast(Any, 0.5)),)),),
    "condition without a name": (Check(A, (Equals("", 1),)),),
    "empty index value": (Put(A, {"due_shard": "due#1", "due": ""}),),
    "index value not a text": (Update(A, set={"listed_at": 5}),),
    "index value null": (Update(A, set={"list_of": None}),),
    "index value added to": (Update(A, add={"due": 1}),),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(store: AnyStore, name: str) -> None:
    with pytest.raises(ValueError):
        commit(store, *MISTAKES[name])
    if name != "nothing":
        with pytest.raises(ValueError):
            commit(store, Put(B, {}), *MISTAKES[name])
        assert store.get(B) is None


def test_keys_are_checked_by_reads_too(store: AnyStore) -> None:
    with pytest.raises(ValueError):
        store.get(Key("", "a"))
    with pytest.raises(ValueError):
        store.get_many([Key("p", "")])
    with pytest.raises(ValueError):
        store.query("")
    with pytest.raises(ValueError):
        store.query_index("due", "")


@pytest.mark.parametrize("size", [1, 2])
def test_adding_to_what_is_not_a_number(store: AnyStore, pk: str, size: int) -> None:
    key = Key(pk, "a")
    commit(store, Put(key, {"text": "x"}))
    pad = tuple(Put(Key(pk, "b"), {}) for _ in range(size - 1))
    with pytest.raises(ValueError):
        commit(store, Update(key, add={"text": 1}), *pad)
    assert store.get(Key(pk, "b")) is None
