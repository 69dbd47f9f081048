"""What only the twin enforces: where DynamoDB is stricter than the emulators, or may be."""

from __future__ import annotations

import threading

import pytest

from mango.domain.transaction import (
    MAX_ITEM_BYTES,
    Check,
    Delete,
    Item,
    Key,
    Put,
    Refused,
    TooLarge,
    Transaction,
    Update,
)
from mango.memory import MemoryStore

KB = 1024


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def filled(store: MemoryStore, count: int, size: int) -> list[Key]:
    keys = [Key("p", f"i{n:03d}") for n in range(count)]
    for key in keys:
        store.commit(Transaction((Put(key, {"text": "x" * size}),)))
    return keys


def test_a_page_stops_before_a_megabyte(store: MemoryStore) -> None:
    keys = filled(store, 8, 300 * KB)
    seen: list[str] = []
    after = None
    sizes = []
    while True:
        page = store.query("p", after=after)
        sizes.append(len(page.items))
        seen += [key.sk for key, _ in page.items]
        if page.next is None:
            break
        after = page.next
    assert (seen, sizes) == ([key.sk for key in keys], [3, 3, 2])


def test_a_page_that_ends_at_its_limit_has_a_next_even_at_the_end(store: MemoryStore) -> None:
    filled(store, 2, 1)
    page = store.query("p", limit=2)
    assert page.next == "i001"
    rest = store.query("p", limit=2, after=page.next)
    assert (rest.items, rest.next) == ([], None)
    store.commit(Transaction((Put(Key("q", "a"), {"due_shard": "d", "due": "1"}),)))
    first = store.query_index("due", "d", limit=1)
    assert first.next is not None
    assert store.query_index("due", "d", limit=1, start=first.next).items == []


def test_a_transaction_counts_what_updates_make_of_items(store: MemoryStore) -> None:
    keys = filled(store, 11, 390 * KB)
    with pytest.raises(TooLarge):
        store.commit(Transaction(tuple(Update(key, set={"n": 1}) for key in keys)))
    with pytest.raises(TooLarge):
        store.commit(Transaction(tuple(Delete(key) for key in keys)))
    with pytest.raises(TooLarge):
        store.commit(Transaction(tuple(Put(key, {}, new=False) for key in keys)))
    assert all(item is not None and "n" not in item for item in store.get_many(keys))
    store.commit(Transaction(tuple(Update(key, set={"n": 1}) for key in keys[:10])))


def test_a_failed_condition_wins_over_an_update_that_is_too_large(store: MemoryStore) -> None:
    (key,) = filled(store, 1, 390 * KB)
    grow = Update(key, set={"more": "x" * 20 * KB})
    with pytest.raises(Refused) as caught:
        store.commit(Transaction((Check(Key("p", "missing")), grow)))
    assert caught.value.indexes == (0,)
    with pytest.raises(TooLarge):
        store.commit(Transaction((grow,)))


def test_sizes_are_those_of_the_documentation(store: MemoryStore) -> None:
    key = Key("p", "k")
    item: Item = {"null": None, "bool": True, "list": [1, "ab"], "map": {"é": "x"}, "n": 12345}
    # keys 2+1 and 2+1; then name and value: 4+1, 4+1, 4+(3+1+2+1+2), 3+(3+1+2+1), 1+(5//2+2)
    counted = 6 + 5 + 5 + 13 + 10 + 5
    store.commit(Transaction((Put(key, {**item, "t": "x" * (MAX_ITEM_BYTES - counted - 1)}),)))
    with pytest.raises(TooLarge):
        store.commit(Transaction((Put(key, {**item, "t": "x" * (MAX_ITEM_BYTES - counted)}, new=False),)))


def test_an_addition_that_needs_39_digits_changes_nothing(store: MemoryStore) -> None:
    key = Key("p", "k")
    store.commit(Transaction((Put(key, {"n": 10**38 - 1}),)))
    with pytest.raises(ValueError, match="38 digits"):
        store.commit(Transaction((Put(Key("p", "other"), {}), Update(key, add={"n": 1}))))
    assert store.dump() == {key: {"n": 10**38 - 1}}


def test_the_dump_is_a_copy(store: MemoryStore) -> None:
    key = Key("p", "k")
    store.commit(Transaction((Put(key, {"list": []}),)))
    dump = store.dump()
    dump[key]["list"] = [1]
    del dump[key]
    assert store.dump() == {key: {"list": []}}


def test_readers_never_see_half_a_transaction(store: MemoryStore) -> None:
    left, right = Key("p", "left"), Key("p", "right")
    store.commit(Transaction((Put(left, {"n": 0}), Put(right, {"n": 0}))))
    done = threading.Event()
    torn: list[object] = []

    def read() -> None:
        while not done.is_set():
            first, second = (item["n"] for _, item in store.query("p").items)
            if first != second:
                torn.append((first, second))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(2000):
        store.commit(Transaction((Update(left, add={"n": 1}), Update(right, add={"n": 1}))))
    done.set()
    reader.join()
    assert torn == []
