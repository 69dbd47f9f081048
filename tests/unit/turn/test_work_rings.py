"""Rings at the doorbell may be lost, doubled, late and out of order: they change when work is claimed, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mango.domain.errors import NotFound
from mango.domain.wire.work import PollQuery
from mango.services import environments, work
from mango.turn.sweep import RING_AT_LEAST_EVERY
from tests.support.invariants import check_at_rest
from tests.support.world import WORKSPACE, World, result, text, tools

BASH = ("bash", {"command": "true"})


@pytest.fixture
def world() -> World:
    return World()


def asking(world: World) -> tuple[str, str]:
    """A session whose call waits, and its work."""
    session = world.session("go")
    world.drive(tools(BASH))
    return session, world.doorbell.rings[-1][1]


def answer_ring(world: World, work_id: str) -> Any:
    return work.poll(world.ctx, WORKSPACE, world.environment_id, PollQuery(work_id=work_id), "w")


def acknowledged(world: World) -> None:
    item = world.claim()
    assert item is not None
    world.acknowledge(item)


def stopping(world: World) -> None:
    item = world.claim()
    assert item is not None
    world.stop(world.acknowledge(item), force=False)


def finished(world: World) -> None:
    item = world.claim()
    assert item is not None
    holder = world.acknowledge(item)
    world.send(item["data"]["id"], result(world.open_calls(item["data"]["id"])[0]), principal=holder)
    world.drive(text("done"))
    world.stop(holder)


@pytest.mark.parametrize("before", [World.claim, acknowledged, stopping, finished], ids=lambda act: act.__name__)
def test_a_late_or_doubled_ring_finds_nothing(world: World, before: Callable[[World], Any]) -> None:
    _, work_id = asking(world)
    before(world)
    shown = work.retrieve(world.ctx, WORKSPACE, world.environment_id, work_id)
    for _ in range(3):
        assert answer_ring(world, work_id) is None
    assert work.retrieve(world.ctx, WORKSPACE, world.environment_id, work_id) == shown


def test_a_ring_for_what_never_was_finds_nothing(world: World) -> None:
    asking(world)
    assert answer_ring(world, "work_doesnotexist") is None
    assert world.claim() is not None


def test_a_ring_at_the_wrong_environment_finds_nothing(world: World) -> None:
    _, work_id = asking(world)
    first = world.environment_id
    world.session()
    assert world.environment_id != first
    assert answer_ring(world, work_id) is None


def test_rings_are_answered_in_any_order(world: World) -> None:
    first, second = asking(world), asking(world)
    environments_of = [environment for environment, _ in list(world.doorbell.rings)[-2:]]
    for (session, work_id), environment in reversed(list(zip((first, second), environments_of, strict=True))):
        world.environment_id = environment
        item = answer_ring(world, work_id)
        assert item is not None and item["data"]["id"] == session
        world.send(session, result(world.open_calls(session)[0]), principal=world.acknowledge(item))
        world.drive(text("done"))
        check_at_rest(world.thread(session), world.history(session), world.clock.now())


def test_a_lost_ring_is_rung_again_and_less_often_the_longer_it_waits(world: World) -> None:
    _, work_id = asking(world)
    began, moments = world.clock.now(), []
    world.doorbell.rings.clear()
    for _ in range(24 * 60):  # a day with a sweep a minute
        if world.sweep(60).rung:
            moments.append((world.clock.now() - began) / 1_000_000)
    assert moments[0] == 60
    pauses = [after - before for before, after in pairwise(moments)]
    assert max(pauses) <= RING_AT_LEAST_EVERY + 60
    assert len(moments) < 24 * 6 + 10, "a queue that nobody reads must not fill up"
    assert {rung for _, rung in world.doorbell.rings} == {work_id}


def test_an_expired_claim_is_rung_again(world: World) -> None:
    _, work_id = asking(world)
    acknowledged(world)
    world.doorbell.rings.clear()
    assert world.sweep(31).requeued == 1
    assert list(world.doorbell.rings) == [(world.environment_id, work_id)]
    assert answer_ring(world, work_id) is not None


def test_a_successor_is_rung(world: World) -> None:
    asking(world)
    item = world.claim()
    assert item is not None
    world.stop(world.acknowledge(item))
    assert answer_ring(world, world.doorbell.rings[-1][1]) is not None


def test_the_bell_is_made_with_its_environment_and_stays_when_that_is_archived(world: World) -> None:
    _, work_id = asking(world)
    assert world.environment_id in world.doorbell.opened
    environments.archive(world.ctx, WORKSPACE, world.environment_id)
    assert world.environment_id in world.doorbell.opened
    assert answer_ring(world, work_id) is not None
    with pytest.raises(NotFound):
        work.poll(world.ctx, WORKSPACE, "env_none", PollQuery(work_id=work_id), "w")
