from __future__ import annotations

import asyncio

import pytest

from mango.domain.ledger import Cursor
from mango.stream import app as app_module
from mango.stream.frames import Frame
from mango.stream.subscriber import MAX_BYTES, MAX_FRAMES, End, Subscriber
from tests.unit.stream.watching import NEVER, Client, World


def frames(seq: int, count: int, size: int = 10) -> list[Frame]:
    return [Frame(Cursor(seq, nth + 1), b"x" * size) for nth in range(count)]


def test_a_reader_who_stops_is_cut_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "LAST_WORDS_SECONDS", 0.1)

    async def scenario() -> None:
        world = World(NEVER)
        async with Client(world.app()) as slow, Client(world.app()) as quick:
            await slow.opened()
            slow.reading.clear()
            for number in range(400):
                world.append("agent.message")
                if number % 50 == 49:
                    await quick.shows(number + 1)
            await slow.ended()
            assert quick.events == world.log
            assert world.hub.subscribers == 1
            slow.reading.set()
            cursor = slow.frames[-1].id if slow.frames else "0.0"
            seen = len(slow.events)
        async with Client(world.app(), last_event_id=cursor) as again:
            await again.shows(400 - seen)
            assert [*slow.events, *again.events] == world.log

    asyncio.run(scenario())


def test_a_slow_reader_of_a_long_history_is_not_cut() -> None:
    async def scenario() -> None:
        world = World(NEVER)
        world.fill(1500)
        async with Client(world.app(), last_event_id="0.0") as client:
            while len(client.events) < 1500:
                client.reading.clear()
                await asyncio.sleep(0.001)
                client.reading.set()
                await asyncio.sleep(0.001)
            assert client.events == world.log

    asyncio.run(scenario())


def test_bounds_of_the_queue() -> None:
    async def scenario() -> None:
        many = Subscriber(Cursor(1, 0))
        many.push(1, frames(1, MAX_FRAMES))
        assert many.end is None
        many.push(2, frames(2, 1))
        assert many.end is End.OVERFLOW
        assert many.cut.is_set()
        assert many.take() == b""

        large = Subscriber(Cursor(1, 0))
        large.push(1, frames(1, 1, MAX_BYTES))
        assert large.end is None
        large.push(2, frames(2, 1))
        assert large.end is End.OVERFLOW

        burst = Subscriber(Cursor(1, 0))
        burst.push(1, frames(1, 2 * MAX_FRAMES))
        assert burst.end is None  # a commit cannot be read in parts, and whoever keeps up must not be cut by one
        while burst.take():
            pass
        burst.push(2, frames(2, 1))
        assert burst.end is None

    asyncio.run(scenario())


def test_takes_each_event_once_and_in_order() -> None:
    async def scenario() -> None:
        subscriber = Subscriber(Cursor(3, 2))
        subscriber.push(2, frames(2, 1))
        subscriber.push(3, frames(3, 4))
        subscriber.push(3, frames(3, 4))
        assert subscriber.take() == b"x" * 20
        subscriber.finish(End.DELETED, b"end")
        subscriber.push(4, frames(4, 1))
        assert (subscriber.take(), subscriber.take()) == (b"end", b"")

    asyncio.run(scenario())
