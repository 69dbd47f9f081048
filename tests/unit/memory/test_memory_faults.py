"""The fates of commits that a simulator chooses."""

from __future__ import annotations

import pytest

from mango.domain.transaction import (
    Ambiguous,
    Item,
    Key,
    Put,
    Refused,
    StoreUnavailable,
    TooLarge,
    Transaction,
    Update,
    Value,
)
from mango.memory import Fault, MemoryStore

KEY = Key("p", "a")
OTHER = Key("p", "b")


class Fates:
    """Gives out the fates in order, then none."""

    def __init__(self, *fates: Fault) -> None:
        self.fates = list(fates)
        self.seen: list[Transaction] = []

    def decide(self, transaction: Transaction) -> Fault:
        self.seen.append(transaction)
        return self.fates.pop(0) if self.fates else Fault.NONE


def put(key: Key, number: int = 1) -> Transaction:
    return Transaction((Put(key, {"n": number}),))


def store_with(*fates: Fault) -> tuple[MemoryStore, list[Transaction]]:
    store = MemoryStore(Fates(*fates))
    heard: list[Transaction] = []
    store.on_commit.append(heard.append)
    return store, heard


def test_unavailable_writes_nothing() -> None:
    store, heard = store_with(Fault.UNAVAILABLE)
    with pytest.raises(StoreUnavailable):
        store.commit(put(KEY))
    assert store.dump() == {}
    store.commit(put(KEY))
    assert heard == [put(KEY)]


def test_a_lost_answer_was_applied_and_nobody_is_told() -> None:
    store, heard = store_with(Fault.ANSWER_LOST)
    with pytest.raises(Ambiguous):
        store.commit(put(KEY))
    assert store.get(KEY) == {"n": 1}
    assert heard == []


def test_a_refusal_whose_answer_is_lost_is_ambiguous_too() -> None:
    store, _ = store_with(Fault.NONE, Fault.ANSWER_LOST)
    store.commit(put(KEY))
    with pytest.raises(Ambiguous):
        store.commit(Transaction((Put(OTHER, {}), Put(KEY, {"n": 2}))))
    assert store.dump() == {KEY: {"n": 1}}


def test_never_is_never() -> None:
    store, heard = store_with(Fault.NEVER)
    with pytest.raises(Ambiguous):
        store.commit(put(KEY))
    assert store.deliver_late() == 0
    assert (store.dump(), heard) == ({}, [])


def test_late_is_tried_when_it_is_delivered() -> None:
    store, heard = store_with(Fault.LATE, Fault.LATE)
    for transaction in (put(KEY), put(KEY, 2)):
        with pytest.raises(Ambiguous):
            store.commit(transaction)
    assert store.dump() == {}
    assert store.late == (put(KEY), put(KEY, 2))
    assert store.deliver_late() == 1  # the second finds the item there
    assert store.dump() == {KEY: {"n": 1}}
    assert not store.late
    assert store.deliver_late() == 0
    assert not heard


def test_late_ones_may_overtake_each_other() -> None:
    store, _ = store_with(Fault.LATE, Fault.LATE)
    for number in (1, 2):
        with pytest.raises(Ambiguous):
            store.commit(put(KEY, number))
    assert store.deliver_late(1) == 1
    assert store.deliver_late(0) == 0
    assert store.dump() == {KEY: {"n": 2}}


def test_late_is_judged_by_what_is_there_then() -> None:
    store, _ = store_with(Fault.NONE, Fault.LATE)
    store.commit(put(KEY))
    with pytest.raises(Ambiguous):
        store.commit(Transaction((Update(KEY, add={"n": 1}),)))
    store.commit(Transaction((Update(KEY, add={"n": 10}),)))
    store.deliver_late()
    assert store.get(KEY) == {"n": 12}


def test_late_carries_what_was_sent_not_what_became_of_it() -> None:
    store, _ = store_with(Fault.LATE)
    inner: list[Value] = [1]
    item: Item = {"list": inner}
    with pytest.raises(Ambiguous):
        store.commit(Transaction((Put(KEY, item),)))
    inner.append(2)
    item["more"] = True
    store.deliver_late()
    assert store.get(KEY) == {"list": [1]}


def test_what_is_malformed_never_meets_its_fate() -> None:
    fates = Fates(Fault.ANSWER_LOST)
    store = MemoryStore(fates)
    with pytest.raises(ValueError, match="at least one"):
        store.commit(Transaction(()))
    with pytest.raises(TooLarge):
        store.commit(Transaction((Put(KEY, {"x": "x" * 500_000}),)))
    assert fates.seen == []


def test_refused_as_usual_without_a_fault() -> None:
    store, heard = store_with()
    store.commit(put(KEY))
    with pytest.raises(Refused):
        store.commit(put(KEY))
    assert heard == [put(KEY)]


@pytest.mark.parametrize("fate", [Fault.ANSWER_LOST, Fault.LATE, Fault.NEVER])
def test_who_listens_for_doubt_is_told_of_it_and_of_nothing_else(fate: Fault) -> None:
    store, heard = store_with(fate, Fault.UNAVAILABLE)
    doubted: list[Transaction] = []
    store.on_ambiguous.append(doubted.append)
    with pytest.raises(Ambiguous):
        store.commit(put(KEY))
    with pytest.raises(StoreUnavailable):
        store.commit(put(KEY))
    store.commit(put(OTHER))
    with pytest.raises(Refused):
        store.commit(put(OTHER))
    assert (heard, doubted) == ([put(OTHER)], [put(KEY)])
