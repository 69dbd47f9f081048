"""What an adapter says when the wire fails: ambiguous whenever the request may have arrived, and never twice."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mango.aws.clients import Clients
from mango.aws.store import DynamoStore
from mango.domain.transaction import Ambiguous, Key, Put, Refused, StoreUnavailable, Transaction, Update, Write
from tests.contract.backends import TABLE, prepare
from tests.contract.proxy import Mode, Proxy
from tests.support.roto import RotoServer

APPLIED = [Mode.LOSE_ANSWER, Mode.FAIL, Mode.TRUNCATE]


@pytest.fixture
def proxy(roto: RotoServer, roto_clients: Clients) -> Iterator[Proxy]:
    with Proxy(roto.endpoint) as proxy:
        yield proxy


def connected(roto: RotoServer, proxy: Proxy, read_seconds: float) -> Iterator[DynamoStore]:
    clients = Clients(replace(roto.settings, endpoint_url=proxy.endpoint, read_seconds=read_seconds))
    yield DynamoStore(clients.dynamodb, TABLE, attempts=3)
    clients.close()


@pytest.fixture
def store(roto: RotoServer, proxy: Proxy) -> Iterator[DynamoStore]:
    yield from connected(roto, proxy, 10.0)


@pytest.fixture
def hasty(roto: RotoServer, proxy: Proxy) -> Iterator[DynamoStore]:
    """For answers that never come."""
    yield from connected(roto, proxy, 0.5)


def writes(pk: str, size: int) -> tuple[Write, ...]:
    return tuple(Put(Key(pk, f"i{n}"), {"n": n}) for n in range(size))


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("mode", APPLIED)
def test_applied_without_an_answer(store: DynamoStore, proxy: Proxy, pk: str, mode: Mode, size: int) -> None:
    heard: list[Transaction] = []
    doubted: list[Transaction] = []
    store.on_commit.append(heard.append)
    store.on_ambiguous.append(doubted.append)
    proxy.mode = mode
    lost = Transaction(writes(pk, size))
    with pytest.raises(Ambiguous):
        store.commit(lost)
    assert proxy.requests == 1
    proxy.mode = Mode.PASS
    assert len(store.query(pk).items) == size
    assert (heard, doubted) == ([], [lost])


@pytest.mark.parametrize("size", [1, 2])
def test_applied_without_an_answer_in_time(
    store: DynamoStore, hasty: DynamoStore, proxy: Proxy, pk: str, size: int
) -> None:
    proxy.mode = Mode.SILENT
    with pytest.raises(Ambiguous):
        hasty.commit(Transaction(writes(pk, size)))
    assert proxy.requests == 1
    proxy.mode = Mode.PASS
    assert len(store.query(pk).items) == size


@pytest.mark.parametrize("size", [1, 2])
def test_never_arrived(store: DynamoStore, proxy: Proxy, pk: str, size: int) -> None:
    proxy.mode = Mode.LOSE_REQUEST
    with pytest.raises(Ambiguous):
        store.commit(Transaction(writes(pk, size)))
    assert proxy.requests == 1
    proxy.mode = Mode.PASS
    assert store.query(pk).items == []


@pytest.mark.parametrize("size", [1, 2])
def test_arrived_late(store: DynamoStore, proxy: Proxy, pk: str, size: int) -> None:
    proxy.mode = Mode.HOLD
    with pytest.raises(Ambiguous):
        store.commit(Transaction(writes(pk, size)))
    proxy.mode = Mode.PASS
    assert store.query(pk).items == []
    proxy.deliver()
    assert len(store.query(pk).items) == size


def test_an_answer_lost_on_a_connection_that_worked_before(store: DynamoStore, proxy: Proxy, pk: str) -> None:
    counter = Key(pk, "counter")
    store.commit(Transaction((Put(counter, {"n": 0}),)))
    for mode in APPLIED:
        proxy.mode = mode
        with pytest.raises(Ambiguous):
            store.commit(Transaction((Update(counter, add={"n": 1}),)))
        proxy.mode = Mode.PASS
    assert store.get(counter) == {"n": len(APPLIED)}


def test_refused_stays_refused(store: DynamoStore, proxy: Proxy, pk: str) -> None:
    store.on_ambiguous.append(lambda transaction: pytest.fail("nothing is in doubt"))
    store.commit(Transaction(writes(pk, 2)))
    with pytest.raises(Refused):
        store.commit(Transaction(writes(pk, 2)))


@pytest.mark.parametrize("mode", [Mode.LOSE_REQUEST, Mode.LOSE_ANSWER, Mode.FAIL, Mode.TRUNCATE])
def test_reads_are_made_again_and_then_given_up(store: DynamoStore, proxy: Proxy, pk: str, mode: Mode) -> None:
    proxy.mode = mode
    for read in (
        lambda: store.get(Key(pk, "a")),
        lambda: store.get_many([Key(pk, "a"), Key(pk, "b")]),
        lambda: store.query(pk),
        lambda: store.query_index("due", pk),
    ):
        before = proxy.requests
        with pytest.raises(StoreUnavailable):
            read()
        assert proxy.requests - before == 3


def test_a_read_without_an_answer_is_given_up(hasty: DynamoStore, proxy: Proxy, pk: str) -> None:
    proxy.mode = Mode.SILENT
    with pytest.raises(StoreUnavailable):
        hasty.get(Key(pk, "a"))
    assert proxy.requests == 3


def test_ping(store: DynamoStore, proxy: Proxy) -> None:
    store.ping()
    for mode in (Mode.LOSE_REQUEST, Mode.FAIL):
        proxy.mode = mode
        with pytest.raises(StoreUnavailable):
            store.ping()
    proxy.mode = Mode.PASS
    store.ping()


def test_nobody_listens(roto: RotoServer, pk: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        clients = Clients(replace(roto.settings, endpoint_url=f"http://127.0.0.1:{free.getsockname()[1]}"))
        store = DynamoStore(clients.dynamodb, TABLE, attempts=2)
        for size in (1, 2):
            with pytest.raises(StoreUnavailable):
                store.commit(Transaction(writes(pk, size)))
        for read in (lambda: store.get(Key(pk, "a")), lambda: store.query(pk), store.ping):
            with pytest.raises(StoreUnavailable):
                read()
        clients.close()


def test_a_table_that_is_not_there(roto_clients: Clients, pk: str) -> None:
    store = DynamoStore(roto_clients.dynamodb, "no-such-table")
    for size in (1, 2):
        with pytest.raises(StoreUnavailable):
            store.commit(Transaction(writes(pk, size)))
    with pytest.raises(StoreUnavailable):
        store.get(Key(pk, "a"))


def test_acknowledged_survives_kill_9(data_dir: Path, pk: str) -> None:
    with RotoServer(data_dir) as server:
        clients = Clients(server.settings)
        prepare(clients)
        store = DynamoStore(clients.dynamodb, TABLE)
        store.commit(Transaction(writes(pk, 3)))
        server.kill()
        with pytest.raises((StoreUnavailable, Ambiguous)):
            store.commit(Transaction((Put(Key(pk, "x"), {}),)))
        server.start()
        assert [key.sk for key, _ in store.query(pk).items] == ["i0", "i1", "i2"]
        clients.close()
