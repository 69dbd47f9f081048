"""Executions that die, wait or fail: the sweeper, voided leases and Trouble bring every thread back."""

from __future__ import annotations

import pytest

from mango.domain import keys
from mango.domain.thread import Status
from mango.domain.times import rfc3339
from mango.domain.transaction import StoreUnavailable, Transaction, Update
from mango.memory.faults import Fault
from mango.ports import Cancellation, ModelAnswer, ModelRequest
from mango.services.context import Limits
from mango.turn.sweep import void_leases
from mango.turn.trouble import run_trouble
from tests.support.invariants import check_at_rest
from tests.support.world import World, text, tools


class Died(BaseException):
    """The process is gone."""


def dies(request: ModelRequest, cancellation: Cancellation) -> ModelAnswer:
    raise Died


def died(world: World) -> str:
    """A session whose only execution died in the middle of its model request."""
    session = world.session("hello")
    with pytest.raises(Died):
        world.drive(dies)
    return session


def at_rest(world: World, session: str) -> None:
    check_at_rest(world.thread(session), world.history(session), world.clock.now())


def test_a_lost_execution_is_driven_again_when_its_lease_expires() -> None:
    world = World()
    session = died(world)
    assert not world.sweep(29)
    assert world.sweep(2).started == 1
    world.drive(text("hi"))
    at_rest(world, session)
    assert world.types(session)[2:5] == [
        "span.model_request_start",
        "span.model_request_end",
        "span.model_request_start",
    ]


def test_a_start_that_was_lost_is_made_by_the_sweeper() -> None:
    world = World()
    session = world.session("hello")
    world.orchestrator.take()  # nobody runs it
    assert world.sweep(2).started == 1
    world.drive(text("hi"))
    at_rest(world, session)


def test_voided_leases_do_not_wait_for_their_expiry() -> None:
    world = World()
    session = died(world)
    assert void_leases(world.ctx).started == 1
    world.drive(text("hi"))
    at_rest(world, session)


def test_voiding_leases_twice_and_without_need_changes_nothing() -> None:
    world = World()
    session = world.session("hello")
    world.drive(text("hi"))
    before = world.thread(session)
    assert not void_leases(world.ctx)
    assert world.thread(session) == before


def test_a_lease_that_is_renewed_is_not_taken() -> None:
    world = World(limits=Limits(look_every=0.01, renew_every=0.0))
    session = world.session("hello")

    def slow(request: ModelRequest, cancellation: Cancellation) -> ModelAnswer:
        first = world.thread(session).lease
        world.clock.advance(20)
        while world.thread(session).lease == first:
            cancellation.wait(0.001)
        world.clock.advance(20)
        assert not world.sweep()
        return text("hi")

    world.drive(slow)
    at_rest(world, session)


def test_trouble_frees_the_lease_and_plans_the_next_try() -> None:
    world = World()
    session = died(world)
    thread = world.thread(session)
    run_trouble(world.ctx, session, thread.thread_id, thread.holder)
    after = world.thread(session)
    assert (after.status, after.holder, after.gen) == (Status.RESCHEDULING, "", thread.gen + 1)
    assert world.types(session)[-3:] == ["span.model_request_end", "session.error", "session.status_rescheduled"]
    assert world.sweep(3).started == 1
    world.drive(text("hi"))
    at_rest(world, session)
    assert world.thread(session).troubles == 0


def test_trouble_of_a_deposed_execution_changes_nothing() -> None:
    world = World()
    session = died(world)
    void_leases(world.ctx)
    before = world.thread(session)
    run_trouble(world.ctx, session, before.thread_id, f"{before.thread_id}-1")
    assert world.thread(session) == before


def test_ten_troubles_in_a_row_end_the_session_with_the_reason() -> None:
    world = World()
    session = died(world)
    for n in range(10):
        thread = world.thread(session)
        run_trouble(world.ctx, session, thread.thread_id, thread.holder)
        if n < 9:
            world.sweep(120)
            with pytest.raises(Died):
                world.drive(dies)
    assert world.thread(session).status is Status.TERMINATED
    error = [event for event in world.history(session) if event["type"] == "session.error"][-1]
    assert error["error"]["retry_status"] == {"type": "terminal"}
    assert "10 times" in error["error"]["message"]
    at_rest(world, session)


def test_one_damaged_item_does_not_keep_the_others_waiting() -> None:
    world = World()
    broken, healthy = world.session("one"), world.session("two")
    world.orchestrator.take()
    # A deletion that cannot go on: its work pointer names an environment that the tombstone does not know any more.
    due = {"due": rfc3339(world.clock.now()), "due_shard": keys.due_shard(broken)}
    world.store.commit(
        Transaction((Update(keys.meta(broken), set={"deleted_at": 1, "environment_id": "env_x", **due}),))
    )
    report = world.sweep(2)
    assert report.started >= 1
    world.drive(text("hi"), text("hi"))
    at_rest(world, healthy)


def test_a_store_that_fails_leaves_everything_for_later() -> None:
    class Down:
        down = False

        def decide(self, transaction: Transaction) -> Fault:
            return Fault.UNAVAILABLE if self.down else Fault.NONE

    faults = Down()
    world = World(faults=faults)
    session = world.session("hello")
    faults.down = True
    with pytest.raises(StoreUnavailable):
        world.drive()
    faults.down = False
    world.sweep(2)
    world.drive(tools(("bash", {})))
    assert world.thread(session).gate == "open"
