"""Every durable step is hit in turn: the answer is lost, it is applied late or never, the store fails, all dies.

Each story is run once without faults to count its commits, then once for each commit and fault. The outcome must be
the same: every message answered, every call with one result, the session at rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from mango.domain.errors import Conflict, InvalidRequest, RetryableConflict, Unauthenticated, Unavailable
from mango.domain.thread import Gate
from mango.domain.transaction import StoreUnavailable, Transaction
from mango.domain.work import MAX_CLAIMS
from mango.memory.faults import Fault
from mango.ports import Cancellation, ModelAnswer, ModelRequest
from tests.support.invariants import check_at_rest, check_history, check_thread
from tests.support.world import World, result, text, tools

Story = Callable[["Deployment"], str]


class Died(BaseException):
    """The process is gone; nothing of it may catch this."""


class OneFault:
    """The n-th commit has a fate of its own."""

    def __init__(self, at: int, fate: Fault | None) -> None:
        self.count = 0
        self.armed = False
        self._at = at
        self._fate = fate

    def decide(self, transaction: Transaction) -> Fault:
        self.count += self.armed
        if not self.armed or self.count != self._at:
            return Fault.NONE
        if self._fate is None:
            raise Died
        return self._fate


class DiesAfter(OneFault):
    """The n-th commit is applied, and the process dies before it hears of it."""

    def __init__(self, at: int, world: Callable[[], World]) -> None:
        super().__init__(at, Fault.NONE)
        self._world = world
        self._passing = False

    def decide(self, transaction: Transaction) -> Fault:
        if self._passing or not self.armed:
            return Fault.NONE
        self.count += 1
        if self.count == self._at:
            self._passing = True
            try:
                self._world().store.commit(transaction)
            finally:
                self._passing = False
            raise Died
        return Fault.NONE


class Deployment(World):
    """A world whose clients repeat what was not acknowledged and whose sweeper brings back what died."""

    def setup_is_over(self) -> None:
        """From here commits count."""
        if isinstance(self.store.faults, OneFault):
            self.store.faults.armed = True

    def patiently(self, act: Callable[[], Any]) -> Any:
        """A client that asks again after a failure, looking at the history first (no idempotency key yet)."""
        for _ in range(5):
            try:
                return act()
            except (StoreUnavailable, Unavailable, Died):
                continue
        raise AssertionError("never got through")

    def execute(self, session_id: str, thread_id: str, execution: str) -> None:
        try:
            super().execute(session_id, thread_id, execution)
        except (StoreUnavailable, Died):
            return  # the execution is gone; `due` brings the thread back

    def settle(self, session_id: str, passes: int = 12) -> None:
        """Time, sweeps and late messages until nothing moves."""
        for _ in range(passes):
            self.drive()
            self.store.deliver_late()
            self.pass_waits(40)
            with suppress(StoreUnavailable, Died):
                self.sweep()
            self.check(session_id)
        self.drive()

    def check(self, session_id: str) -> None:
        events = self.history(session_id)
        check_history(events)
        check_thread(self.thread(session_id), events, self.clock.now())

    def say_once(self, session_id: str, words: str) -> None:
        def act() -> None:
            sent = [e for e in self.history(session_id) if e["type"] == "user.message"]
            if not any(event["content"][0]["text"] == words for event in sent):
                self.say(session_id, words)

        self.patiently(act)

    def interrupt_once(self, session_id: str) -> None:
        def act() -> None:
            if not any(event["type"] == "user.interrupt" for event in self.history(session_id)):
                self.send(session_id, {"type": "user.interrupt"})

        self.patiently(act)

    def claim_and_die(self, *, quietly: bool = True) -> None:
        """A worker that is lost with whatever it claimed; not `quietly`: there must be nothing to claim."""
        item = None
        with suppress(StoreUnavailable, Unavailable, Died, RetryableConflict, Conflict):
            item = self.claim()
            if item is not None:
                self.acknowledge(item)
        assert quietly or item is None

    def errors(self, session_id: str) -> list[str]:
        return [event["error"]["type"] for event in self.history(session_id) if event["type"] == "session.error"]

    def answer_all(self, session_id: str) -> None:
        """A worker that answers every open call, and takes a refusal as "somebody did"."""

        def act() -> None:
            while self.thread(session_id).gate is Gate.OPEN:
                for call in self.open_calls(session_id):
                    try:
                        self.send(session_id, result(call, f"result of {call}"))
                    except (InvalidRequest, Unauthenticated):
                        continue

        self.patiently(act)


def replying(request: ModelRequest, cancellation: Cancellation) -> ModelAnswer:
    """A pure function of the transcript: two calls for the first message, plain words for everything else."""
    last = request.messages[-1]["content"]
    if len(request.messages) == 1:
        return tools(("bash", {"command": "a"}), ("bash", {"command": "b"}))
    return text("answer to " + ", ".join(str(block.get("text", block["type"])) for block in last))


def conversation(world: Deployment) -> str:
    """A tool turn with a message waiting behind the barrier, then a text turn."""
    session = world.session()
    world.model.replies = [replying] * 50
    world.setup_is_over()
    world.say_once(session, "first")
    world.settle(session)
    world.say_once(session, "second")
    world.answer_all(session)
    world.settle(session)
    world.say_once(session, "third")
    world.settle(session)
    return session


def interrupted(world: Deployment) -> str:
    """A tool turn whose calls an interrupt closes, then another message."""
    session = world.session()
    world.model.replies = [replying] * 50
    world.setup_is_over()
    world.say_once(session, "first")
    world.settle(session)
    world.interrupt_once(session)
    world.settle(session)
    world.say_once(session, "second")
    world.settle(session)
    return session


def poisoned(world: Deployment) -> str:
    """A tool turn whose workers all die, until the work is parked; an interrupt, and another message."""
    session = world.session()
    world.model.replies = [replying] * 50
    world.setup_is_over()
    world.say_once(session, "first")
    for _ in range(2 * MAX_CLAIMS):
        world.settle(session, passes=2)
        world.claim_and_die()
    world.settle(session)
    assert world.errors(session) == ["unknown_error"]
    world.patiently(lambda: world.claim_and_die(quietly=False))
    world.interrupt_once(session)
    world.settle(session)
    world.say_once(session, "second")
    world.settle(session)
    return session


STORIES: dict[str, Story] = {"conversation": conversation, "interrupted": interrupted, "poisoned": poisoned}
FATES = [Fault.UNAVAILABLE, Fault.ANSWER_LOST, Fault.LATE, Fault.NEVER, None]


def commits_of(story: Story) -> int:
    faults = OneFault(0, Fault.NONE)
    story(Deployment(faults=faults))
    return faults.count


def check_outcome(world: World, session: str, messages: int) -> None:
    events = world.history(session)
    check_at_rest(world.thread(session), events, world.clock.now())
    said = [event["content"][0]["text"] for event in events if event["type"] == "user.message"]
    assert said == ["first", "second", "third"][:messages]
    uses = [event["id"] for event in events if event["type"] == "agent.tool_use"]
    results = [event["tool_use_id"] for event in events if event["type"] == "user.tool_result"]
    assert len(uses) == 2
    assert sorted(results) == sorted(uses)


@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.name.lower() if fate else "dies before")
@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("remember", [0, 64], ids=["reads", "remembers"])
def test_every_commit_meets_a_fault(remember: int, name: str, fate: Fault | None) -> None:
    story = STORIES[name]
    total = commits_of(story)
    assert total > 8
    for at in range(1, total + 1):
        world = Deployment(faults=OneFault(at, fate), remember=remember)
        session = story(world)
        check_outcome(world, session, 3 if name == "conversation" else 2)


@pytest.mark.parametrize("name", STORIES)
def test_the_process_dies_right_after_every_commit(name: str) -> None:
    story = STORIES[name]
    for at in range(1, commits_of(story) + 1):
        holder: list[Deployment] = []
        faults = DiesAfter(at, lambda: holder[0])  # noqa: B023  # used within this pass only
        holder.append(Deployment(faults=faults))
        session = story(holder[0])
        check_outcome(holder[0], session, 3 if name == "conversation" else 2)
