"""`on_commit`: in-process streams hear of commits that are known to be applied, and of no others."""

from __future__ import annotations

import pytest

from mango.domain.transaction import Key, Put, Refused, TooLarge, Transaction
from tests.contract.backends import AnyStore


def test_listeners_hear_applied_commits_only(store: AnyStore, pk: str) -> None:
    key = Key(pk, "a")
    heard: list[tuple[Transaction, bool]] = []
    store.on_commit.append(lambda transaction: heard.append((transaction, store.get(key) is not None)))
    applied = Transaction((Put(key, {"n": 1}),))
    store.commit(applied)
    with pytest.raises(Refused):
        store.commit(Transaction((Put(key, {"n": 2}),)))
    with pytest.raises(TooLarge):
        store.commit(Transaction((Put(Key(pk, "b"), {"text": "x" * 500_000}),)))
    with pytest.raises(ValueError):
        store.commit(Transaction(()))
    assert heard == [(applied, True)]


def test_a_listener_may_commit_and_listeners_may_come_and_go(store: AnyStore, pk: str) -> None:
    first, second = Key(pk, "a"), Key(pk, "b")

    def follow(transaction: Transaction) -> None:
        store.on_commit.remove(follow)
        store.commit(Transaction((Put(second, {}),)))

    calls: list[int] = []
    store.on_commit.append(follow)
    store.on_commit.append(lambda transaction: calls.append(len(transaction.writes)))
    store.commit(Transaction((Put(first, {}),)))
    assert store.get(second) == {}
    assert calls == [1, 1]
