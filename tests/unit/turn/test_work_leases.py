"""The lease on a session's tools: one live work item, rising generations, tokens that die with their claim."""

from __future__ import annotations

import base64
import json

import pytest

from mango.domain.errors import Conflict, InvalidRequest, PreconditionFailed, Unauthenticated
from mango.domain.principal import Principal
from mango.domain.wire.work import HeartbeatQuery, PollQuery
from mango.services import sessions, work, work_token
from tests.support.world import WORKSPACE, World, result, text, tools

BASH = ("bash", {"command": "true"})
INTERRUPT = {"type": "user.interrupt"}


@pytest.fixture(params=[0, 64], ids=["reads", "remembers"])
def world(request: pytest.FixtureRequest) -> World:
    return World(remember=request.param)


def parked(world: World, calls: int = 1) -> str:
    session = world.session("go")
    world.drive(tools(*[BASH] * calls))
    return session


def held(world: World) -> Principal:
    item = world.claim()
    assert item is not None
    return world.acknowledge(item)


def test_creating_a_session_queues_no_work_and_a_tool_call_does(world: World) -> None:
    world.session()
    assert world.claim() is None
    parked(world)
    item = world.claim()
    assert item is not None
    assert item["state"] == "queued"
    assert item["secret"]


def test_a_second_call_uses_the_live_work(world: World) -> None:
    session = parked(world)
    holder = held(world)
    (call,) = world.open_calls(session)
    world.send(session, result(call), principal=holder)
    world.drive(tools(BASH))
    assert world.claim() is None
    assert len(work.list_page(world.ctx, WORKSPACE, world.environment_id, None, None)["data"]) == 1


def test_a_claim_that_is_not_acknowledged_is_handed_out_again_with_another_token(world: World) -> None:
    parked(world)
    first = world.claim()
    assert first is not None
    assert world.claim() is None
    world.clock.advance(6)
    second = world.claim()
    assert second is not None
    assert second["id"] == first["id"]
    assert second["secret"] != first["secret"]
    world.acknowledge(second)
    with pytest.raises(Unauthenticated):
        world_token(world, first["secret"])


def world_token(world: World, secret: str) -> Principal:
    return work_token.authenticate_token(world.ctx, json.loads(base64.urlsafe_b64decode(secret))["sessions_token"])


def test_a_late_acknowledgement_is_a_conflict(world: World) -> None:
    parked(world)
    item = world.claim()
    assert item is not None
    world.clock.advance(6)
    with pytest.raises(Conflict):
        work.acknowledge(world.ctx, WORKSPACE, world.environment_id, item["id"])


def test_a_token_cannot_be_used_before_acknowledgement(world: World) -> None:
    parked(world)
    item = world.claim()
    assert item is not None
    with pytest.raises(Unauthenticated):
        world_token(world, item["secret"])


def test_an_expired_worker_cannot_write_and_its_successor_can(world: World) -> None:
    session = parked(world)
    (call,) = world.open_calls(session)
    first = held(world)
    world.clock.advance(31)
    with pytest.raises(Unauthenticated):
        world.send(session, result(call), principal=first)
    assert world.sweep().requeued == 1
    second = held(world)
    assert second.generation == first.generation + 1
    with pytest.raises(Unauthenticated):
        world.send(session, result(call), principal=first)
    world.send(session, result(call), principal=second)
    with pytest.raises(InvalidRequest):
        world.send(session, result(call), principal=second)


def test_heartbeats_are_compared_and_a_lost_answer_may_be_repeated(world: World) -> None:
    parked(world)
    holder = held(world)  # has beaten once, from NO_HEARTBEAT
    repeated = world.beat(holder, "NO_HEARTBEAT")
    following = world.beat(holder, repeated["last_heartbeat"])
    assert following["last_heartbeat"] != repeated["last_heartbeat"]  # although the clock stands still
    assert world.beat(holder, repeated["last_heartbeat"])["last_heartbeat"] == following["last_heartbeat"]
    third = world.beat(holder, following["last_heartbeat"])
    assert third["last_heartbeat"] != following["last_heartbeat"]
    with pytest.raises(PreconditionFailed) as failed:
        world.beat(holder, "NO_HEARTBEAT")
    assert failed.value.details is not None
    assert failed.value.details["current_state"]["last_heartbeat"] == third["last_heartbeat"]


def test_a_key_holder_without_the_newest_value_is_refused(world: World) -> None:
    parked(world)
    holder = held(world)
    assert holder.work_id
    with pytest.raises(PreconditionFailed):
        work.heartbeat(
            world.ctx,
            WORKSPACE,
            world.environment_id,
            holder.work_id,
            HeartbeatQuery(expected_last_heartbeat="NO_HEARTBEAT"),
        )


def test_stop_without_open_calls_ends_the_work_and_its_token(world: World) -> None:
    session = parked(world)
    (call,) = world.open_calls(session)
    holder = held(world)
    world.send(session, result(call), principal=holder)
    world.drive(text("done"))
    assert world.stop(holder)["state"] == "stopped"
    with pytest.raises(Conflict):
        world.stop(holder)
    assert world.claim() is None


def test_stop_that_races_an_open_call_queues_a_successor(world: World) -> None:
    session = parked(world)
    holder = held(world)
    world.stop(holder)
    successor = world.claim()
    assert successor is not None
    assert successor["id"] != holder.work_id
    (call,) = world.open_calls(session)
    world.send(session, result(call), principal=world.acknowledge(successor))


def test_graceful_stop_is_told_by_the_next_heartbeat_and_completed_by_force(world: World) -> None:
    parked(world)
    holder = held(world)
    assert world.stop(holder, force=False)["state"] == "stopping"
    assert world.beat(holder)["lease_extended"] is False
    assert world.stop(holder)["state"] == "stopped"


def test_graceful_stop_of_a_worker_that_never_answers_is_completed_by_the_sweeper(world: World) -> None:
    parked(world)
    world.stop(held(world), force=False)
    assert world.sweep(31).stopped == 1
    assert world.claim() is not None  # the call is still open, so a successor was queued


def test_queued_work_rings_again(world: World) -> None:
    parked(world)
    rings = len(world.doorbell.rings)
    assert world.sweep(31).rung == 1
    assert len(world.doorbell.rings) == rings + 1


def test_a_named_item_is_claimed_by_whoever_heard_the_bell(world: World) -> None:
    parked(world)
    _, work_id = world.doorbell.rings[-1]
    claimed = work.poll(world.ctx, WORKSPACE, world.environment_id, PollQuery(work_id=work_id), "w")
    assert claimed is not None
    assert work.poll(world.ctx, WORKSPACE, world.environment_id, PollQuery(work_id=work_id), "w") is None


def test_archiving_stops_the_work(world: World) -> None:
    session = parked(world)
    holder = held(world)
    sessions.archive(world.ctx, WORKSPACE, session)
    sessions.archive(world.ctx, WORKSPACE, session)
    with pytest.raises(Conflict):
        world.stop(holder)
    assert world.claim() is None
    world.sweep(120)
    assert world.claim() is None


def test_stats_tell_what_waits(world: World) -> None:
    parked(world)
    before = work.stats(world.ctx, WORKSPACE, world.environment_id)
    assert (before["depth"], before["pending"], before["workers_polling"]) == (1, 0, 0)
    world.claim("w1")
    claimed = work.stats(world.ctx, WORKSPACE, world.environment_id)
    assert (claimed["depth"], claimed["pending"], claimed["workers_polling"]) == (0, 1, 1)


def test_an_interrupt_closes_the_call_and_the_worker_finds_nothing_to_do(world: World) -> None:
    session = parked(world)
    (call,) = world.open_calls(session)
    holder = held(world)
    world.send(session, INTERRUPT)
    with pytest.raises(InvalidRequest):
        world.send(session, result(call), principal=holder)
    world.stop(holder)
    assert world.claim() is None


def test_claimed_items_do_not_hide_the_work_behind_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "CANDIDATES", 3)
    parked(world)
    first = world.environment_id
    sessions_here = [world.another_session(first) for _ in range(7)]
    for session in sessions_here:
        world.say(session, "go")
        world.drive(tools(BASH))
    claimed = [world.claim() for _ in range(9)]
    assert len({item["id"] for item in claimed if item}) == 8
    assert claimed[8] is None


ASK = {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_ask"}}}


def allow(call: str) -> dict[str, str]:
    return {"type": "user.tool_confirmation", "tool_use_id": call, "result": "allow"}


def asking(world: World) -> tuple[str, str]:
    """A session whose only call awaits an approval."""
    session = world.session("go", tools=(ASK,))
    world.drive(tools(BASH))
    (call,) = world.open_calls(session)
    return session, call


def test_a_call_that_awaits_its_approval_needs_no_worker_until_it_has_it(world: World) -> None:
    session, call = asking(world)
    assert world.claim() is None
    world.send(session, allow(call))
    assert world.doorbell.rings
    world.send(session, result(call), principal=held(world))


def test_a_denied_call_never_needs_a_worker(world: World) -> None:
    session, call = asking(world)
    world.send(session, {**allow(call), "result": "deny"})
    world.drive(text("as you wish"))
    assert world.claim() is None


def test_a_worker_that_leaves_while_an_approval_is_missing_is_followed_by_nobody(world: World) -> None:
    session = world.session("go", tools=(ASK,))
    world.drive(tools(BASH, BASH))
    first, second = world.open_calls(session)
    world.send(session, allow(first))
    holder = held(world)
    world.send(session, result(first), principal=holder)
    world.stop(holder)
    assert world.claim() is None
    world.send(session, allow(second))
    assert world.claim() is not None


def test_an_approval_finds_the_live_work(world: World) -> None:
    session = world.session("go", tools=(ASK,))
    world.drive(tools(BASH, BASH))
    first, second = world.open_calls(session)
    world.send(session, allow(first))
    holder = held(world)
    world.send(session, allow(second))
    assert world.claim() is None
    world.stop(holder)
    assert world.claim() is not None
