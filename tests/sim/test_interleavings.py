"""Clients, workers, executions and the sweeper interleave at every store operation, die, and lose answers.

Whatever the seed does: nothing accepted is lost or doubled, every call has exactly one result, what is owed is due,
and the session comes to rest by itself once the faults stop. `SEEDS` in the environment says how many.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from mango.domain import keys
from mango.domain.errors import Conflict, InvalidRequest, PreconditionFailed, RetryableConflict, Unauthenticated
from mango.domain.thread import Gate
from mango.domain.times import micros
from mango.domain.transaction import Ambiguous, StoreUnavailable
from mango.memory import MemoryStore
from mango.ports import Cancellation, ModelAnswer, ModelError, ModelRequest
from mango.services.context import Limits
from mango.services.work_store import PARKED
from mango.turn.round import run_round
from mango.turn.sweep import sweep
from mango.turn.trouble import run_trouble
from tests.sim.stepper import Fates, SteppedStore, Stepper, pause, sleep_until
from tests.support.invariants import check_at_rest, check_history, check_thread
from tests.support.world import World, result, text, tools

SEEDS = int(os.environ.get("SEEDS", "300"))
TRIES = 2
"""One try of a round and one Retry, as in the state machine."""
NO_ANSWER = (StoreUnavailable, Ambiguous, RetryableConflict)


class Story:
    """One session's life under one seed."""

    def __init__(self, seed: int, *, cursed: bool = False) -> None:
        self.cursed = cursed
        """No worker lives to see a result."""
        self.parked = 0
        self.stepper = Stepper(seed)
        chance = self.stepper.chance
        self.world = World(seed, remember=chance.choice([0, 64]), limits=Limits(look_every=3600))
        store = MemoryStore(Fates(self.stepper))
        self.world.store = store
        self.world.ctx = replace(self.world.ctx, store=SteppedStore(store, self.stepper))
        self.world.turn = replace(self.world.turn, services=self.world.ctx)
        self.world.turn.model.request = self.reply  # type: ignore[method-assign]
        self.session = self.world.session()
        self.sent: list[str] = []
        self.stepper.deaths = chance.randint(0, 3)
        self.stepper.losses = chance.randint(0, 3)
        self.errors = chance.randint(0, 2)

    # -- what the actors do
    def reply(self, request: ModelRequest, cancellation: Cancellation, on_text: Any = None) -> ModelAnswer:
        """Takes a moment, in which others act; then calls tools or speaks, or fails."""
        pause()
        chance = self.stepper.chance
        if self.errors and chance.random() < 0.15:
            self.errors -= 1
            raise ModelError("model_overloaded_error", "overloaded", retryable=True)
        if chance.random() < 0.5 and len(request.messages) < 12:
            return tools(*[("bash", {"command": "x"})] * chance.randint(1, 2))
        return text("words")

    def execution(self, thread_id: str, name: str) -> None:
        tries = 0
        while True:
            try:
                answer = run_round(self.world.turn, self.session, thread_id, name)
            except NO_ANSWER:
                tries += 1
                if tries < TRIES:
                    continue
                return self.trouble(thread_id, name)
            tries = 0
            if answer["next"] == "backoff":
                sleep_until(_moment(answer["retry_at"]))
            elif answer["next"] != "round":
                return None

    def trouble(self, thread_id: str, name: str) -> None:
        try:
            run_trouble(self.world.ctx, self.session, thread_id, name)
        except NO_ANSWER:
            return

    def client(self, words: str) -> None:
        """Sends one message, and after a failure looks before it repeats it."""
        while not self.was_sent(words):
            try:
                self.world.say(self.session, words)
            except NO_ANSWER:
                continue
        self.sent.append(words)

    def was_sent(self, words: str) -> bool:
        try:
            events = self.world.history(self.session)
        except NO_ANSWER:
            return False
        return any(e["type"] == "user.message" and e["content"][0]["text"] == words for e in events)

    def interrupter(self) -> None:
        try:
            self.world.send(self.session, {"type": "user.interrupt"})
        except NO_ANSWER:
            return

    def worker(self) -> None:
        """Claims, answers what is open, stops; gives up at the first refusal."""
        chance = self.stepper.chance
        try:
            item = self.world.claim()
            if item is None or (self.cursed and chance.random() < 0.3):
                return
            holder = self.world.acknowledge(item)
            if self.cursed:
                if chance.random() < 0.3:
                    self.world.stop(holder, force=chance.random() < 0.5)
                return
            for call in self.waiting_calls():
                self.world.send(self.session, result(call), principal=holder)
            self.world.stop(holder)
        except (*NO_ANSWER, Unauthenticated, InvalidRequest, Conflict, PreconditionFailed):
            return

    def waiting_calls(self) -> list[str]:
        events = self.world.history(self.session)
        answered = {event["tool_use_id"] for event in events if event["type"] == "user.tool_result"}
        return [e["id"] for e in events if e["type"] == "agent.tool_use" and e["id"] not in answered]

    def sweeper(self) -> None:
        try:
            sweep(self.world.ctx)
        except NO_ANSWER:
            return

    # -- the run
    def run(self) -> None:
        chance = self.stepper.chance
        for number in range(chance.randint(1, 4)):
            self.stepper.spawn(f"client {number}", lambda words=f"m{number}": self.client(words), mortal=False)  # type: ignore[misc]
        interrupts, workers = chance.randint(0, 2), chance.randint(1, 12 if self.cursed else 4)
        for _ in range(1500):
            self.start_executions()
            self.perhaps(interrupts > 0, 0.01, "interrupter", self.interrupter)
            if self.perhaps(workers > 0, 0.05, "worker", self.worker):
                workers -= 1
            self.perhaps(True, 0.02, "sweeper", self.sweeper)
            if chance.random() < (0.05 if self.cursed else 0.02):
                self.world.clock.advance(chance.choice([0.5, 3, 31]))
            if chance.random() < 0.02:
                self.world.store.deliver_late()
            if not self.stepper.step(self.world.clock.now()):
                self.world.clock.advance(1)
            self.check()
            if not self.stepper.actors and not workers:
                break

    def perhaps(self, allowed: bool, share: float, name: str, act: Any) -> bool:
        if allowed and self.stepper.chance.random() < share:
            self.stepper.spawn(name, act)
            return True
        return False

    def start_executions(self) -> None:
        for start in self.world.orchestrator.take():
            if self.stepper.deaths and self.stepper.chance.random() < 0.05:
                continue  # the start was lost
            name = f"{start.thread_id}-{start.wake}"
            self.stepper.spawn(f"execution {start.wake}", lambda name=name: self.execution(start.thread_id, name))  # type: ignore[misc]  # noqa: B023

    def settle(self) -> None:
        """No more faults: time, sweeps and a worker must bring the session to rest, an interrupt if work is parked."""
        self.stepper.deaths = self.stepper.losses = self.errors = 0
        for _ in range(200 if self.cursed else 60):
            self.world.store.deliver_late()
            self.world.clock.advance(40)
            self.stepper.spawn("sweeper", self.sweeper)
            self.stepper.spawn("worker", self.worker)
            while True:
                self.start_executions()
                if not self.stepper.step(self.world.clock.now()):
                    break
                self.check()
            if self.is_parked():
                self.parked += 1
                self.interrupter()
            if not self.stepper.actors and self.at_rest():
                return
        raise AssertionError("the session does not come to rest:\n" + "\n".join(self.stepper.trace[-60:]))

    def at_rest(self) -> bool:
        thread = self.world.thread(self.session)
        # After exhausted retries the inbox waits for the next message (decision 31).
        return not thread.due and not thread.gate and (thread.hold or not thread.waiting)

    def check(self) -> None:
        thread = self.world.thread(self.session)
        now = self.world.clock.now()
        if thread.runnable(now) or thread.live(now):
            assert thread.due, "owed, but not due:\n" + "\n".join(self.stepper.trace[-40:])
        if self.is_parked():
            assert self.was_told(), "calls wait, no work is live, and nobody is told:\n" + "\n".join(
                self.stepper.trace[-40:]
            )

    def is_parked(self) -> bool:
        """Calls wait although nobody is offered them."""
        item = self.world.store.get(keys.session_work(self.session))
        assert item is not None
        return self.world.thread(self.session).gate is Gate.OPEN and not item["live"]

    def was_told(self) -> bool:
        """The history's last word on the calls that wait is why nobody is offered them."""
        said = [e for e in self.world.history(self.session) if e["type"] in ("session.error", "session.status_idle")]
        return bool(said) and said[-1].get("error", {}).get("message") == PARKED

    def verdict(self) -> None:
        events = self.world.history(self.session)
        now = self.world.clock.now()
        check_history(events)
        check_thread(self.world.thread(self.session), events, now)
        check_at_rest(self.world.thread(self.session), events, now)
        said = [event["content"][0]["text"] for event in events if event["type"] == "user.message"]
        assert sorted(said) == sorted(set(said)) == sorted(self.sent)


def _moment(text_: str) -> int:
    from datetime import datetime

    return micros(datetime.fromisoformat(text_))


@pytest.mark.parametrize("block", range(10))
def test_seeds(block: int) -> None:
    for seed in range(block * SEEDS // 10, (block + 1) * SEEDS // 10):
        story = Story(seed)
        try:
            story.run()
            story.settle()
            story.verdict()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.parametrize("block", range(10))
def test_workers_that_always_die(block: int) -> None:
    """Every session still comes to rest: its work is parked, it says so, and an interrupt lets it go on."""
    parked = 0
    for seed in range(block * SEEDS // 30, (block + 1) * SEEDS // 30):
        story = Story(seed, cursed=True)
        try:
            story.run()
            story.settle()
            story.verdict()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        parked += story.parked
    assert parked


def test_a_seed_replays_exactly() -> None:
    traces = []
    for _ in range(2):
        story = Story(7)
        story.run()
        story.settle()
        traces.append((story.stepper.trace, [event["type"] for event in story.world.history(story.session)]))
    assert traces[0] == traces[1]
