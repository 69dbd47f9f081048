from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from mango.domain.errors import Unavailable
from mango.domain.principal import Credential, Principal
from mango.domain.transaction import Ambiguous, StoreUnavailable
from mango.memory import Fault
from mango.stream import app as app_module
from mango.stream import feed as feed_module
from tests.unit.stream.watching import FAST, NEVER, SESSION, THREAD, Client, World


def test_starts_at_now_and_shows_what_is_committed() -> None:
    async def scenario() -> None:
        world = World(NEVER)
        world.fill(5)
        async with Client(world.app()) as client:
            assert (client.status, client.headers["content-type"]) == (200, "text/event-stream")
            assert client.headers["request-id"].startswith("req_")
            world.append("user.message", "session.status_running")
            world.append("agent.message", texts=["two\nlines\u2028three"])
            await client.shows(3)
            assert client.events == world.log[5:]
            assert [frame.event for frame in client.frames] == [event["type"] for event in world.log[5:]]
            assert [frame.id for frame in client.frames] == [
                f"{world.head - 1}.1",
                f"{world.head - 1}.2",
                f"{world.head}.1",
            ]

    asyncio.run(scenario())


def test_the_start_is_fixed_before_the_headers_are_sent() -> None:
    async def scenario() -> None:
        world = World(FAST, told=False)
        for _ in range(20):
            async with Client(world.app()) as client:
                world.append("user.message")
                await client.shows(1)
                assert client.events == world.log[-1:]

    asyncio.run(scenario())


def test_commits_of_other_processes_are_found_by_looking() -> None:
    async def scenario() -> None:
        world = World(FAST, told=False)
        async with Client(world.app()) as client:
            for _ in range(5):
                world.append("agent.message")
                await asyncio.sleep(0.03)
            await client.shows(5)
            assert client.events == world.log

    asyncio.run(scenario())


@pytest.mark.parametrize("fate", [Fault.ANSWER_LOST, Fault.LATE])
def test_a_commit_whose_answer_was_lost_is_looked_for_at_once(fate: Fault) -> None:
    async def scenario() -> None:
        world = World(NEVER)
        async with Client(world.app()) as client:
            await asyncio.sleep(0.05)  # its feed's first look is over
            began = time.monotonic()
            with pytest.raises(Ambiguous):
                world.append("agent.message", fate=fate)
            if fate is Fault.LATE:
                await asyncio.sleep(0.2)
                world.store.deliver_late()
            await client.shows(1)
            assert time.monotonic() - began < 1
            assert client.events == world.log

    asyncio.run(scenario())


def test_what_was_in_doubt_and_never_came_costs_little_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "DOUBT", 0.3)
    monkeypatch.setattr(feed_module, "DOUBT_PACE", 0.05)

    async def scenario() -> None:
        world = World(NEVER)
        async with Client(world.app()):
            await asyncio.sleep(0.05)
            with pytest.raises(Ambiguous):
                world.append("agent.message", fate=Fault.NEVER)
            await asyncio.sleep(0.5)
            reads = world.store.reads
            assert 2 < reads < 30
            await asyncio.sleep(0.3)
            assert world.store.reads == reads

    asyncio.run(scenario())


@pytest.mark.parametrize("by", ["header", "parameter"])
def test_resuming_at_every_cursor_gives_exactly_the_rest(by: str) -> None:
    async def scenario() -> None:
        world = World(NEVER)
        world.fill(50)
        async with Client(world.app(), last_event_id="0.0") as client:
            await client.shows(50)
            ids = [frame.id for frame in client.frames]
        assert len(set(ids)) == 50
        for seen, cursor in enumerate(ids, 1):
            given = {"last_event_id": cursor} if by == "header" else {}
            query = f"after={cursor}" if by == "parameter" else ""
            async with Client(world.app(), query=query, **given) as client:
                world.append("agent.message")
                await client.shows(len(world.log) - seen)
                assert client.events == world.log[seen:]

    asyncio.run(scenario())


def test_resuming_at_the_opening_id_misses_nothing() -> None:
    async def scenario() -> None:
        world = World(NEVER)
        world.fill(7)
        async with Client(world.app()) as client:
            await client.opened()
            opening = client.raw.decode().split("id: ")[1].split("\n")[0]
        world.append("user.message", "agent.message")
        async with Client(world.app(), last_event_id=opening) as client:
            await client.shows(2)
            assert client.events == world.log[7:]

    asyncio.run(scenario())


def test_the_header_goes_before_the_parameter() -> None:
    async def scenario() -> None:
        world = World(NEVER)
        world.fill(6)
        async with Client(world.app(), query="after=0.0", last_event_id=f"{world.head - 1}.9") as client:
            await client.shows(1)
            assert client.events[0]["id"] in {event["id"] for event in world.log[-3:]}

    asyncio.run(scenario())


def test_writers_and_resuming_readers_agree() -> None:
    """While commits go on in other threads, every reader sees one gapless order from its cursor on."""

    async def scenario() -> None:
        world = World(FAST)

        def write() -> None:
            for _ in range(300):
                world.append("agent.message")

        writer = asyncio.create_task(asyncio.to_thread(write))
        clients = []
        while not writer.done():
            cursor = f"{max(world.head - 3, 0)}.1" if world.head > 3 else "0.0"
            clients.append((cursor, Client(world.app(), last_event_id=cursor)))
            await asyncio.sleep(0.005)
        await writer
        for cursor, client in clients:
            after = int(cursor.split(".")[0])
            await client.shows(300 - after)
            assert [frame.id for frame in client.frames] == [f"{seq}.1" for seq in range(after + 1, 301)]
            client.leave()
            await client.ended()
        assert (world.hub.feeds, world.hub.subscribers) == (0, 0)

    asyncio.run(scenario())


def test_two_hundred_watch_for_the_price_of_one() -> None:
    async def reads(watchers: int) -> int:
        world = World(NEVER)
        clients = [Client(world.app()) for _ in range(watchers)]
        for client in clients:
            await client.opened()
        await asyncio.sleep(0.1)
        world.store.reads = 0
        for _ in range(20):
            await asyncio.to_thread(world.append, "agent.message", "span.model_request_end")
        for client in clients:
            await client.shows(40)
            assert client.events == world.log
            client.leave()
        await asyncio.gather(*(client.ended() for client in clients))
        return world.store.reads

    assert asyncio.run(reads(1)) == asyncio.run(reads(200)) == 0


def test_two_hundred_watch_a_foreign_process_for_the_price_of_one() -> None:
    async def scenario() -> None:
        world = World(FAST, told=False)
        clients = [Client(world.app()) for _ in range(200)]
        for client in clients:
            await client.opened()
        await asyncio.sleep(0.1)
        world.store.reads = 0
        for _ in range(10):
            world.append("agent.message")
            await asyncio.sleep(0.03)
        for client in clients:
            await client.shows(10)
            client.leave()
        await asyncio.gather(*(client.ended() for client in clients))
        # A look (two items) every 20 ms and a page or two for each event, whoever watches.
        assert world.store.reads < 200

    asyncio.run(scenario())


def test_deletion_is_the_last_frame() -> None:
    async def scenario() -> None:
        world = World(NEVER)
        world.fill(3)
        first, second = Client(world.app()), Client(world.app(), last_event_id="0.0")
        for client in (first, second):
            await client.opened()
        world.append("session.status_idle")
        world.fence()
        for client, expected in ((first, world.log[3:]), (second, world.log)):
            await client.ended()
            assert client.complete
            assert client.events[:-1] == expected
            assert set(client.events[-1]) == {"id", "processed_at", "type"}
            assert client.frames[-1][:2] == ("", "session.deleted")
        assert first.events[-1] == second.events[-1]
        async with Client(world.app()) as late:
            assert late.status == 404

    asyncio.run(scenario())


def test_deletion_by_another_process_shows_no_torn_history() -> None:
    async def scenario() -> None:
        world = World(FAST, told=False)
        world.fill(30)
        async with Client(world.app()) as client:
            await client.opened()
            world.fence()
            world.remove()
            await client.ended()
            assert [event["type"] for event in client.events] == ["session.deleted"]

    asyncio.run(scenario())


def test_idle_streams_are_kept_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "KEEP_ALIVE_SECONDS", 0.05)

    async def scenario() -> None:
        world = World(NEVER)
        async with Client(world.app()) as client:
            await client.until(lambda: client.raw.count(b": keep-alive\n\n") >= 3)
            world.append("agent.message")
            await client.shows(1)

    asyncio.run(scenario())


def test_the_server_ends_a_stream_in_time_at_an_event() -> None:
    async def scenario() -> None:
        world = World(NEVER)
        async with Client(world.app(max_seconds=0.1)) as client:
            world.append("agent.message")
            await client.ended()
            assert client.complete
            assert client.events == world.log

    asyncio.run(scenario())


def test_closing_ends_streams_and_refuses_new_ones() -> None:
    async def scenario() -> None:
        world = World(NEVER)
        async with Client(world.app()) as client:
            world.append("agent.message")
            await client.shows(1)
            world.append("agent.message")
            await asyncio.to_thread(world.hub.close)
            await client.ended()
            assert client.complete
            assert client.events == world.log
        async with Client(world.app()) as refused:
            assert refused.status == 503

    asyncio.run(scenario())


PRINCIPALS = [
    Principal(Credential.WORKSPACE, "wrkspc_1", "key_2"),
    Principal(Credential.ENVIRONMENT, "wrkspc_1", "key_3", "env_1"),
    Principal(Credential.WORK, "wrkspc_1", "work_1", "env_1", SESSION, "work_1", 1, "digest"),
]


@pytest.mark.parametrize("token", PRINCIPALS, ids=lambda token: token.kind)
def test_a_credential_is_looked_at_again(monkeypatch: pytest.MonkeyPatch, token: Principal) -> None:
    assert app_module.REVALIDATE_SECONDS[token.kind] <= 5
    monkeypatch.setitem(app_module.REVALIDATE_SECONDS, token.kind, 0.05)

    async def scenario() -> None:
        world = World(NEVER)
        world.principals["token"] = token
        async with Client(world.app(), authorization="token") as client:
            await asyncio.sleep(0.2)
            world.append("agent.message")
            await client.shows(1)
            del world.principals["token"]
            await client.ended()
            assert client.complete
        world.principals["token"] = token
        async with Client(
            world.app(), f"/v1/sessions/{SESSION}/threads/{THREAD}/stream", authorization="token"
        ) as client:
            # Another claim of the same work, another key of the same text.
            world.principals["token"] = replace(token, key_id="another", generation=token.generation + 1)
            await client.ended()

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [StoreUnavailable("away"), Unavailable()], ids=lambda error: type(error).__name__)
def test_a_store_that_is_away_ends_no_stream(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setitem(app_module.REVALIDATE_SECONDS, Credential.WORKSPACE, 0.02)

    async def scenario() -> None:
        world = World(NEVER)
        app = world.app()
        async with Client(app) as client:
            world.failing = error
            await asyncio.sleep(0.1)
            world.append("agent.message")
            await client.shows(1)
            assert not client.complete
            world.failing = None

    asyncio.run(scenario())
