"""Many threads at once: nothing is lost, nothing is applied twice, nobody sees half a transaction."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from mango.domain.transaction import Check, Equals, Item, Key, Put, Refused, Transaction, Update
from tests.contract.backends import AnyStore, Backend

THREADS = 8
ROUNDS = {"twin": 20, "roto": 20, "moto": 4}  # moto is slow, and its calls are made one at a time


def count_of(item: Item | None) -> int:
    assert item is not None
    count = item["count"]
    assert isinstance(count, int)
    return count


def test_optimistic_increments_are_exact(backend: Backend, pk: str) -> None:
    store, rounds = backend.store, ROUNDS[backend.name]
    counter = Key(pk, "counter")
    store.commit(Transaction((Put(counter, {"count": 0}),)))

    def increment(worker: int) -> int:
        lost = 0
        for n in range(rounds):
            while True:
                seen = count_of(store.get(counter))
                step = Update(counter, set={"count": seen + 1}, conditions=(Equals("count", seen),))
                try:
                    store.commit(Transaction((step, Put(Key(pk, f"log{seen:04d}"), {"by": worker, "n": n}))))
                    break
                except Refused as error:
                    assert error.indexes[0] == 0
                    lost += 1
        return lost

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(increment, range(THREADS)))
    assert count_of(store.get(counter)) == THREADS * rounds
    log = store.query(pk, prefix="log").items
    assert [key.sk for key, _ in log] == [f"log{n:04d}" for n in range(THREADS * rounds)]
    assert len({(item["by"], item["n"]) for _, item in log}) == THREADS * rounds


def test_additions_need_no_reading(backend: Backend, pk: str) -> None:
    store, rounds = backend.store, ROUNDS[backend.name]
    counter = Key(pk, "counter")
    store.commit(Transaction((Put(counter, {"count": 0}),)))

    def add(_: int) -> None:
        for _ in range(rounds):
            store.commit(Transaction((Update(counter, add={"count": 1}),)))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(add, range(THREADS)))
    assert count_of(store.get(counter)) == THREADS * rounds


def test_one_of_many_wins(store: AnyStore, pk: str) -> None:
    store.commit(Transaction((Put(Key(pk, "open"), {"round": 0}),)))

    def claim(worker: int) -> bool:
        try:
            store.commit(
                Transaction(
                    (
                        Check(Key(pk, "open"), (Equals("round", 0),)),
                        Put(Key(pk, "claim"), {"by": worker}),
                        Put(Key(pk, f"worker{worker}"), {}),
                    )
                )
            )
        except Refused as error:
            assert error.indexes == (1,)
            return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        won = [worker for worker, first in enumerate(pool.map(claim, range(THREADS))) if first]
    assert len(won) == 1
    assert store.get(Key(pk, "claim")) == {"by": won[0]}
    assert [key.sk for key, _ in store.query(pk, prefix="worker").items] == [f"worker{won[0]}"]
