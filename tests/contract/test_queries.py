"""Queries of a partition: order, bounds, pages in both directions."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import pytest

from mango.domain.transaction import Key, Put, Transaction
from mango.ports import Page
from tests.contract.backends import AnyStore, Backend

SORT_KEYS = sorted(
    ["A", "A#", "A#1", "A#1\0", "A#10", "A#2", "A#\U0001f96d", "A#\uffff", "A$", "B#1", "B#2", "a#1", "é#1", "\ud7ff#1"]
)


class Ask(NamedTuple):
    prefix: str
    after: str | None
    before: str | None
    descending: bool


ASKS = [
    Ask(*ask)
    for ask in itertools.product(
        ["", "A", "A#", "A#1", "B#", "\ud7ff", "none"],
        [None, "A#1", "A#15", "B#1", "z"],
        [None, "A#1", "A#2", "A$", "B#", "z\U0010ffff"],
        [False, True],
    )
]


def expected(ask: Ask) -> list[str]:
    found = [
        sk
        for sk in SORT_KEYS
        if sk.startswith(ask.prefix)
        and (ask.after is None or sk > ask.after)
        and (ask.before is None or sk < ask.before)
    ]
    return found[::-1] if ask.descending else found


@pytest.fixture
def filled(store: AnyStore, pk: str) -> str:
    store.commit(Transaction(tuple(Put(Key(pk, sk), {"sk_was": sk}) for sk in SORT_KEYS)))
    store.commit(Transaction((Put(Key(f"{pk}x", "A#1"), {}), Put(Key(pk[:-1], "A#1"), {}))))
    return pk


def sort_keys(page: Page) -> list[str]:
    return [key.sk for key, _ in page.items]


def all_pages(store: AnyStore, pk: str, ask: Ask, limit: int) -> list[str]:
    """Follows `next` as a caller does, checking each page."""
    found: list[str] = []
    after, before = ask.after, ask.before
    while True:
        page = store.query(pk, prefix=ask.prefix, after=after, before=before, limit=limit, descending=ask.descending)
        found += sort_keys(page)
        assert len(page.items) <= limit
        if page.next is None:
            return found
        assert page.next == sort_keys(page)[-1]
        if ask.descending:
            before = page.next
        else:
            after = page.next


def test_the_order_is_that_of_bytes(store: AnyStore, filled: str) -> None:
    page = store.query(filled)
    assert sort_keys(page) == SORT_KEYS == sorted(SORT_KEYS, key=str.encode)
    assert page.next is None
    assert page.items == [(Key(filled, sk), {"sk_was": sk}) for sk in SORT_KEYS]


def test_every_combination_of_bounds(store: AnyStore, filled: str) -> None:
    for ask in ASKS:
        page = store.query(filled, prefix=ask.prefix, after=ask.after, before=ask.before, descending=ask.descending)
        assert (ask, sort_keys(page), page.next) == (ask, expected(ask), None)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_together_are_the_whole(store: AnyStore, filled: str, limit: int) -> None:
    for ask in ASKS[:: 5 if limit == 1 else 3]:
        assert (ask, all_pages(store, filled, ask, limit)) == (ask, expected(ask))


def test_a_limit_that_is_not_reached_ends_the_query(store: AnyStore, filled: str) -> None:
    page = store.query(filled, prefix="B#", limit=3)
    assert (sort_keys(page), page.next) == (["B#1", "B#2"], None)


def test_an_empty_partition(store: AnyStore, pk: str) -> None:
    assert store.query(pk) == Page([], None)
    assert store.query(pk, prefix="A", after="A1", before="A5", limit=2, descending=True) == Page([], None)


def test_pages_stop_at_a_megabyte(backend: Backend, pk: str) -> None:
    backend.lacks("roto", "answers more than 1 MB at once")
    store = backend.store
    for n in range(5):
        store.commit(Transaction((Put(Key(pk, f"i{n}"), {"text": "x" * 300_000}),)))
    assert all_pages(store, pk, Ask("i", None, None, False), 100) == [f"i{n}" for n in range(5)]
    first = store.query(pk)
    assert (sort_keys(first), first.next) == (["i0", "i1", "i2"], "i2")
    last = store.query(pk, prefix="i", before="i3~", descending=True)
    assert (sort_keys(last), last.next) == (["i3", "i2", "i1"], "i1")
    assert sort_keys(store.query(pk, prefix="i", after="i2")) == ["i3", "i4"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_a_mistake(store: AnyStore, pk: str, limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        store.query(pk, limit=limit)
    with pytest.raises(ValueError, match="limit"):
        store.query_index("due", pk, limit=limit)
