"""The indexes `by_list` and `due`: sparse, ordered, keys only."""

from __future__ import annotations

import pytest

from mango.domain.transaction import Delete, Item, Key, Put, Transaction, Update
from mango.ports import Page
from tests.contract.backends import AnyStore

TIMES = ["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000001Z", "2026-01-02", "2026-02-01", "2027"]


def due(shard: str, at: str) -> Item:
    return {"due_shard": shard, "due": at}


@pytest.fixture
def shard(store: AnyStore, pk: str) -> str:
    """An index partition with an item for each of `TIMES`, written in another order."""
    for n in (3, 0, 4, 2, 1):
        store.commit(Transaction((Put(Key(f"{pk}{n}", f"s{n}"), {**due(pk, TIMES[n]), "secret": n}),)))
    return pk


def values(page: Page, name: str = "due") -> list[object]:
    return [item[name] for _, item in page.items]


def test_keys_only_in_order(store: AnyStore, shard: str) -> None:
    page = store.query_index("due", shard)
    assert page.items == [(Key(f"{shard}{n}", f"s{n}"), due(shard, TIMES[n])) for n in range(5)]
    assert page.next is None
    assert values(store.query_index("due", shard, descending=True)) == TIMES[::-1]
    assert store.query_index("due", f"{shard}x") == Page([], None)


def test_bounds(store: AnyStore, shard: str) -> None:
    for low in (None, *TIMES, "0", "3"):
        for high in (None, *TIMES, "0", "3"):
            wanted = [at for at in TIMES if (low is None or at > low) and (high is None or at <= high)]
            assert values(store.query_index("due", shard, above=low, at_most=high)) == wanted
            page = store.query_index("due", shard, above=low, at_most=high, limit=2, descending=True)
            assert values(page) == wanted[::-1][:2]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_pages(store: AnyStore, shard: str, limit: int, descending: bool) -> None:
    found: list[object] = []
    start = None
    while True:
        page = store.query_index(
            "due", shard, at_most=TIMES[3], above=TIMES[0], limit=limit, descending=descending, start=start
        )
        found += values(page)
        assert len(page.items) <= limit
        if page.next is None:
            break
        start = page.next
    assert found == (TIMES[3:0:-1] if descending else TIMES[1:4])


def test_items_that_share_a_value_are_all_found(store: AnyStore, pk: str) -> None:
    keys = {Key(pk, f"i{n}") for n in range(7)} | {Key(f"{pk}x", "i0")}
    store.commit(Transaction(tuple(Put(key, due(pk, "same")) for key in keys)))
    found: list[Key] = []
    start = None
    while True:
        page = store.query_index("due", pk, at_most="same", limit=3, start=start)
        found += [key for key, _ in page.items]
        if page.next is None:
            break
        start = page.next
    assert len(found) == 8
    assert set(found) == keys


def test_an_update_moves_removes_and_restores(store: AnyStore, pk: str) -> None:
    key = Key(pk, "a")
    store.commit(Transaction((Put(key, {"n": 1}),)))
    assert store.query_index("due", pk).items == []
    store.commit(Transaction((Update(key, set=due(pk, "1")),)))
    assert store.query_index("due", pk).items == [(key, due(pk, "1"))]
    store.commit(Transaction((Update(key, set=due(pk, "2")),)))
    assert store.query_index("due", pk).items == [(key, due(pk, "2"))]
    assert store.query_index("due", pk, at_most="1").items == []
    store.commit(Transaction((Update(key, set={"due_shard": f"{pk}y"}),)))
    assert store.query_index("due", pk).items == []
    assert store.query_index("due", f"{pk}y").items == [(key, due(f"{pk}y", "2"))]
    store.commit(Transaction((Update(key, remove=("due_shard", "due")),)))
    assert store.query_index("due", f"{pk}y").items == []
    assert store.get(key) == {"n": 1}


def test_an_item_with_half_of_the_attributes_is_not_in_the_index(store: AnyStore, pk: str) -> None:
    key = Key(pk, "a")
    store.commit(Transaction((Put(key, due(pk, "1")), Put(Key(pk, "b"), {"due_shard": pk}))))
    store.commit(Transaction((Update(key, remove=("due",)),)))
    assert store.query_index("due", pk).items == []


def test_put_and_delete(store: AnyStore, pk: str) -> None:
    key = Key(pk, "a")
    both: Item = {**due(pk, "1"), "list_of": pk, "listed_at": "2"}
    store.commit(Transaction((Put(key, both),)))
    assert store.query_index("by_list", pk).items == [(key, {"list_of": pk, "listed_at": "2"})]
    assert store.query_index("due", pk).items == [(key, due(pk, "1"))]
    store.commit(Transaction((Put(key, {"list_of": pk, "listed_at": "3"}, new=False),)))
    assert store.query_index("by_list", pk).items == [(key, {"list_of": pk, "listed_at": "3"})]
    assert store.query_index("due", pk).items == []
    store.commit(Transaction((Delete(key),)))
    assert store.query_index("by_list", pk).items == []


def test_an_unknown_index_is_a_mistake(store: AnyStore, pk: str) -> None:
    with pytest.raises(KeyError):
        store.query_index("other", pk)
