"""Small pages cost small reads, and what a process remembers does not grow for ever."""

from __future__ import annotations

from typing import Any

import pytest

from mango.domain.wire.agents import AgentCreate, AgentListQuery
from mango.domain.wire.environments import EnvironmentCreate
from mango.domain.wire.events import EventListQuery
from mango.domain.wire.work import PollQuery
from mango.ports import Page
from mango.services import agents, environments, event_list, work
from tests.support.world import WORKSPACE, World, text


class Reads:
    """Counts the items that a store's queries return."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        for name in ("query", "query_index"):
            self._watch(world, name, monkeypatch)

    def _watch(self, world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        query = getattr(world.store, name)

        def counting(*args: Any, **options: Any) -> Page:
            page: Page = query(*args, **options)
            self.sizes.append(len(page.items))
            return page

        monkeypatch.setattr(world.store, name, counting)

    def take(self) -> list[int]:
        taken, self.sizes = self.sizes, []
        return taken


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def reads(world: World, monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(world, monkeypatch)


def some_agents(world: World, number: int) -> list[str]:
    return [
        agents.create(world.ctx, WORKSPACE, AgentCreate.parse({"name": "a", "model": "m"}))["id"] for _ in range(number)
    ]


@pytest.mark.parametrize("limit", [1, 3, 90])
def test_a_list_reads_little_more_than_its_page(world: World, reads: Reads, limit: int) -> None:
    made = some_agents(world, 210)[::-1]
    seen: list[str] = []
    page: str | None = None
    while len(seen) < 2 * limit:
        answer = agents.list_page(world.ctx, WORKSPACE, AgentListQuery(limit=limit, page=page))
        seen += [one["id"] for one in answer["data"]]
        page = answer["next_page"]
        assert sum(reads.take()) <= limit + 2
    assert seen == made[: 2 * limit]


def test_a_list_that_hides_much_reads_more_and_more(world: World, reads: Reads) -> None:
    made = some_agents(world, 150)
    for agent_id in made[1:]:
        agents.archive(world.ctx, WORKSPACE, agent_id)
    reads.take()
    assert [one["id"] for one in agents.list_page(world.ctx, WORKSPACE, AgentListQuery(limit=1))["data"]] == made[:1]
    assert len(reads.take()) < 10


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_page_of_history_reads_little_more_than_itself(world: World, reads: Reads, order: Any) -> None:
    session_id = world.session()
    for n in range(40):
        world.say(session_id, str(n))
        world.drive(text("ok"))
    whole = [event["id"] for event in world.history(session_id, order=order)]
    seen: list[str] = []
    page: str | None = None
    reads.take()
    for _ in range(30):
        query = EventListQuery(limit=2, order=order, page=page)
        answer = event_list.list_page(world.ctx, WORKSPACE, session_id, query)
        seen += [event["id"] for event in answer["data"]]
        page = answer["next_page"]
        assert sum(reads.take()) <= 4
    assert seen == whole[:60]


def test_pollers_are_remembered_within_bounds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_MARKS", 10)
    environment_id = environments.create(world.ctx, WORKSPACE, EnvironmentCreate.parse({"name": "e"}))["id"]
    for n in range(35):
        assert work.poll(world.ctx, WORKSPACE, environment_id, PollQuery(), f"worker {n}") is None
    assert len(world.ctx.poll_marks) <= 10
    assert work.stats(world.ctx, WORKSPACE, environment_id)["workers_polling"] == 35
