"""Pages of every list fit into an answer of Lambda, and are never empty before the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from mango.domain import keys
from mango.domain.transaction import Delete, Transaction
from mango.domain.wire.agents import AgentCreate, AgentListQuery
from mango.domain.wire.environments import EnvironmentCreate
from mango.domain.wire.events import EventListQuery
from mango.domain.wire.files import FileListQuery
from mango.domain.wire.sessions import SessionCreate, SessionListQuery
from mango.services import agents, environments, event_list, files, session_list, sessions, work
from mango.services.listing import PAGE_BYTES, weight
from tests.support.world import WORKSPACE, World, message, text

Json = dict[str, Any]
LAMBDA = 6 * 1024 * 1024
TEXTS = {"plain": "x" * 90_000, "quotes": '"\\\n' * 30_000, "wide": "字" * 90_000}


def pages(fetch: Callable[[str | None], Json]) -> Iterator[list[Json]]:
    page: str | None = None
    while True:
        answer = fetch(page)
        # What the function answers: the body as a string in JSON, at its worst.
        body = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        assert len(json.dumps({"statusCode": 200, "body": body})) < LAMBDA
        yield answer["data"]
        page = answer["next_page"]
        assert answer["data"] or page is None, "empty before the end"
        if page is None:
            return


def crowd(world: World, words: str, count: int) -> list[str]:
    """Sessions, oldest first, each with a large agent of its own."""
    environment = environments.create(world.ctx, WORKSPACE, EnvironmentCreate.parse({"name": "Here"}))
    made = []
    for _ in range(count):
        body = AgentCreate.parse({"name": "Ada", "model": "m", "system": words})
        agent = agents.create(world.ctx, WORKSPACE, body)
        body_of_session = {"agent": agent["id"], "environment_id": environment["id"]}
        made.append(sessions.create(world.ctx, WORKSPACE, SessionCreate.parse(body_of_session))["id"])
        world.clock.advance(1)
    return made


@pytest.mark.parametrize("words", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_sessions(words: str, order: Literal["asc", "desc"]) -> None:
    world = World()
    made = crowd(world, words, 60)

    def fetch(page: str | None) -> Json:
        return session_list.list_page(world.ctx, WORKSPACE, SessionListQuery(limit=1000, page=page, order=order))

    found = list(pages(fetch))
    assert len(found) > 1
    shown = [one["id"] for page in found for one in page]
    assert shown == (made if order == "asc" else made[::-1])
    # And back from the last page, whose page before is as full.
    first = fetch(None)
    second = fetch(first["next_page"])
    assert second["prev_page"] is not None
    back = fetch(second["prev_page"])
    assert [one["id"] for one in back["data"]] == [one["id"] for one in first["data"]]


def test_sessions_that_vanish_leave_no_empty_page() -> None:
    world = World()
    made = crowd(world, "x", 6)
    for session_id in made[2:]:
        world.store.commit(Transaction((Delete(keys.snapshot(session_id)),)))

    def fetch(page: str | None) -> Json:
        return session_list.list_page(world.ctx, WORKSPACE, SessionListQuery(limit=2, page=page))

    assert [[one["id"] for one in page] for page in pages(fetch)] == [[made[1], made[0]]]


@pytest.mark.parametrize("words", TEXTS.values(), ids=TEXTS)
def test_agents(words: str) -> None:
    world = World()
    crowd(world, words, 60)
    found = list(pages(lambda page: agents.list_page(world.ctx, WORKSPACE, AgentListQuery(limit=100, page=page))))
    assert len(found) > 1
    assert sum(map(len, found)) == 60


@pytest.mark.parametrize("words", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_events(words: str, order: Literal["asc", "desc"]) -> None:
    """Those of the ledger, and those that wait."""
    world = World()
    session = world.session("first")
    world.drive(*[text(words)] * 1)
    for _ in range(40):
        world.send(session, message(words))
        world.drive(text(words))
    world.send(session, *[message(words)] * 30)

    def fetch(page: str | None) -> Json:
        query = EventListQuery(limit=1000, page=page, order=order)
        return event_list.list_page(world.ctx, WORKSPACE, session, query)

    found = list(pages(fetch))
    assert len(found) > 1
    ids = [one["id"] for page in found for one in page]
    assert len(ids) == len(set(ids))
    assert sum(one["type"] == "user.message" for page in found for one in page) == 71


def test_one_entry_larger_than_a_page_is_a_page() -> None:
    world = World()
    session = world.session("first")
    world.drive(text("x" * (PAGE_BYTES + 1)))

    def fetch(page: str | None) -> Json:
        return event_list.list_page(world.ctx, WORKSPACE, session, EventListQuery(limit=1000, page=page))

    found = list(pages(fetch))
    assert any(len(page) == 1 and weight(page[0]) > PAGE_BYTES for page in found)


def test_files_and_work_at_their_limits() -> None:
    """Names as long as they may be, in letters that take most room; as many as one page may hold."""
    world = World()
    for _ in range(1001):
        files.store_upload(world.ctx, "wrkspc_test", "字" * 255, None, iter([b"x"]))
    found = list(pages(lambda page: files.list_page(world.ctx, WORKSPACE, FileListQuery(limit=1000, page=page))))
    assert sum(map(len, found)) == 1001
    world.session()
    assert list(pages(lambda page: work.list_page(world.ctx, WORKSPACE, world.environment_id, 1000, page))) == [[]]
