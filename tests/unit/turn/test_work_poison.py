"""Work that nobody survives is parked after five claims without a result; an interrupt frees the session."""

from __future__ import annotations

import pytest

from mango.domain import keys
from mango.domain.errors import Conflict, Unauthenticated
from mango.domain.thread import Gate, Status
from mango.domain.wire.work import PollQuery, StopBody
from mango.domain.work import MAX_CLAIMS
from mango.services import work
from mango.services.readings import Pointer, read_pointer
from tests.support.invariants import check_at_rest, check_history, check_thread
from tests.support.world import WORKSPACE, Json, World, message, result, text, tools

BASH = ("bash", {"command": "true"})
ASKING = {
    "type": "agent_toolset_20260401",
    "default_config": {"permission_policy": {"type": "always_ask"}},
}


@pytest.fixture(params=[0, 64], ids=["reads", "remembers"])
def world(request: pytest.FixtureRequest) -> World:
    return World(remember=request.param)


def asking(world: World, calls: int = 1) -> str:
    session = world.session("go")
    world.drive(tools(*[BASH] * calls))
    return session


def dies(world: World, *, acknowledges: bool = True) -> None:
    """A worker that claims and is never heard of again; its lease expires and the sweeper comes."""
    item = world.claim()
    assert item is not None
    if acknowledges:
        world.acknowledge(item)
    world.sweep(31)


def poison(world: World, times: int = MAX_CLAIMS) -> None:
    for _ in range(times):
        dies(world)


def pointer(world: World, session: str) -> Pointer:
    item = world.store.get(keys.session_work(session))
    assert item is not None
    return read_pointer(session, item)


def errors(world: World, session: str) -> list[Json]:
    return [event["error"] for event in world.history(session) if event["type"] == "session.error"]


def check_parked(world: World, session: str) -> None:
    thread = world.thread(session)
    assert (thread.status, thread.gate) == (Status.IDLE, Gate.OPEN)
    assert not pointer(world, session).live
    assert world.claim() is None
    (error,) = errors(world, session)
    assert error["type"] == "unknown_error"
    assert error["retry_status"] == {"type": "exhausted"}
    assert "user.interrupt" in error["message"]
    check_history(world.history(session))
    check_thread(thread, world.history(session), world.clock.now())


def test_five_claims_without_a_result_park_the_work(world: World) -> None:
    session = asking(world, 2)
    calls = world.open_calls(session)
    poison(world, MAX_CLAIMS - 1)
    assert errors(world, session) == []
    dies(world)
    check_parked(world, session)
    assert world.open_calls(session) == calls
    (item,) = work.list_page(world.ctx, WORKSPACE, world.environment_id, None, None)["data"]
    assert item["state"] == "stopped"


def test_claims_count_whether_acknowledged_or_not(world: World) -> None:
    session = asking(world)
    for number in range(MAX_CLAIMS):
        dies(world, acknowledges=number % 2 == 0)
    check_parked(world, session)


def test_parked_work_is_not_rung_and_cannot_be_claimed_by_name_either(world: World) -> None:
    session = asking(world)
    _, work_id = world.doorbell.rings[-1]
    poison(world)
    rings = len(world.doorbell.rings)
    for _ in range(5):
        assert not world.sweep(700)
    assert len(world.doorbell.rings) == rings
    assert work.poll(world.ctx, WORKSPACE, world.environment_id, PollQuery(work_id=work_id), "w") is None
    check_parked(world, session)
    assert work.stats(world.ctx, WORKSPACE, world.environment_id)["depth"] == 0


def test_spent_work_is_nobodys_before_the_sweeper_came(world: World) -> None:
    asking(world)
    poison(world, MAX_CLAIMS - 1)
    item = world.claim()
    assert item is not None
    world.acknowledge(item)
    world.clock.advance(31)
    assert world.claim() is None
    assert world.sweep().parked == 1


def test_the_fifth_worker_may_still_succeed(world: World) -> None:
    session = asking(world)
    poison(world, MAX_CLAIMS - 1)
    item = world.claim()
    assert item is not None
    holder = world.acknowledge(item)
    world.send(session, result(world.open_calls(session)[0]), principal=holder)
    world.drive(text("done"))
    assert errors(world, session) == []
    check_at_rest(world.thread(session), world.history(session), world.clock.now())


def test_a_result_begins_the_count_anew(world: World) -> None:
    session = asking(world, 2)
    poison(world, MAX_CLAIMS - 1)
    item = world.claim()
    assert item is not None
    world.send(session, result(world.open_calls(session)[0]), principal=world.acknowledge(item))
    world.sweep(31)
    poison(world, MAX_CLAIMS - 1)
    assert errors(world, session) == []
    dies(world)
    check_parked(world, session)


def test_the_dead_do_not_write_any_more(world: World) -> None:
    session = asking(world)
    poison(world, MAX_CLAIMS - 1)
    item = world.claim()
    assert item is not None
    last = world.acknowledge(item)
    world.sweep(31)
    check_parked(world, session)
    with pytest.raises(Unauthenticated):
        world.send(session, result(world.open_calls(session)[0]), principal=last)
    with pytest.raises(Conflict):
        world.stop(last)


def test_an_interrupt_frees_the_session_and_the_next_call_has_new_work(world: World) -> None:
    session = asking(world, 2)
    poison(world)
    world.send(session, {"type": "user.interrupt"})
    world.say(session, "again")
    world.drive(tools(BASH))
    item = world.claim()
    assert item is not None
    world.send(session, result(world.open_calls(session)[0]), principal=world.acknowledge(item))
    world.drive(text("done"))
    assert len(errors(world, session)) == 1
    check_at_rest(world.thread(session), world.history(session), world.clock.now())


def test_a_message_waits_until_the_interrupt(world: World) -> None:
    session = asking(world)
    poison(world)
    world.say(session, "still there?")
    world.drive()
    check_parked(world, session)
    world.send(session, {"type": "user.interrupt"})
    world.drive(text("yes"))
    assert world.types(session)[-1] == "session.status_idle"
    check_at_rest(world.thread(session), world.history(session), world.clock.now())


def test_the_application_may_answer_a_parked_call_itself(world: World) -> None:
    session = asking(world)
    poison(world)
    world.send(session, result(world.open_calls(session)[0], "done by hand"))
    world.drive(tools(BASH))
    item = world.claim()
    assert item is not None, "the next call has work of its own"


def test_workers_that_give_the_work_back_without_a_result_are_counted_too(world: World) -> None:
    """A stock worker whose result was refused (413) ends its activation in order, again and again."""
    session = asking(world)
    for _ in range(MAX_CLAIMS):
        item = world.claim()
        assert item is not None
        world.stop(world.acknowledge(item))
    check_parked(world, session)


def test_an_operators_stop_of_spent_work_parks_it_at_once(world: World) -> None:
    session = asking(world)
    poison(world, MAX_CLAIMS - 1)
    item = world.claim()
    assert item is not None
    work.stop(world.ctx, WORKSPACE, world.environment_id, item["id"], StopBody(force=True))
    check_parked(world, session)


def test_whoever_waits_for_an_approval_is_not_blamed(world: World) -> None:
    session = world.session("go", tools=[ASKING])
    world.drive(tools(BASH))
    (call,) = world.open_calls(session)
    assert world.claim() is None  # nobody is called before there is something to do
    assert errors(world, session) == []
    world.send(session, {"type": "user.tool_confirmation", "tool_use_id": call, "result": "allow"})
    item = world.claim()
    assert item is not None
    world.send(session, result(call), principal=world.acknowledge(item))
    world.drive(text("done"))
    check_at_rest(world.thread(session), world.history(session), world.clock.now())


def test_work_that_nobody_needs_any_more_ends_without_a_word(world: World) -> None:
    session = asking(world)
    poison(world, MAX_CLAIMS - 1)
    item = world.claim()
    assert item is not None
    world.acknowledge(item)
    world.send(session, {"type": "user.interrupt"})
    report = world.sweep(31)
    assert (report.stopped, report.parked) == (1, 0)
    assert errors(world, session) == []
    assert world.claim() is None
    world.send(session, message("again"))
    world.drive(tools(BASH))
    assert world.claim() is not None


def test_other_sessions_go_on(world: World) -> None:
    asking(world)
    poison(world)
    healthy = asking(world)
    item = world.claim()
    assert item is not None
    assert item["data"]["id"] == healthy
