"""What a story's commits amount to in numbers."""

from __future__ import annotations

from collections import Counter

import pytest

from mango.domain.transaction import Put, Transaction
from mango.handlers.measures import SPANS, Measures
from mango.ports import ModelAnswer, ModelError, ModelUsage
from mango.system import SystemIds, moment_of
from tests.support.world import World, result, text, tools


class Counted:
    """A world whose commits are counted."""

    def __init__(self) -> None:
        self.world = World()
        self.sums: Counter[str] = Counter()
        self._measures = Measures()
        self.world.store.on_commit.append(self._count)

    def _count(self, transaction: Transaction) -> None:
        for measure in self._measures.of(transaction):
            self.sums[measure.name] += measure.value  # type: ignore[assignment]  # seconds are no whole numbers


def test_a_tool_round_trip() -> None:
    counted = Counted()
    world = counted.world
    session = world.session("go")
    world.drive(tools(("bash", {"command": "ls"}), ("bash", {"command": "pwd"})))
    assert counted.sums["BarrierWaits"] == 1
    world.send(session, *(result(call) for call in world.open_calls(session)))
    world.drive(text("done"))
    sums = {name: counted.sums[name] for name in ("Turns", "Rounds", "ToolRoundTrips", "BarrierWaits", "Retries")}
    assert sums == {"Turns": 1, "Rounds": 2, "ToolRoundTrips": 2, "BarrierWaits": 1, "Retries": 0}


def test_tokens_and_model_seconds() -> None:
    counted = Counted()
    world = counted.world
    world.session("go")

    def slow(*_: object) -> ModelAnswer:
        world.clock.advance(2.5)
        return ModelAnswer([{"type": "text", "text": "ok"}], "end_turn", ModelUsage(11, 7, 5, 3))

    world.drive(slow)
    names = ("InputTokens", "OutputTokens", "CacheCreationTokens", "CacheReadTokens")
    assert [counted.sums[name] for name in names] == [11, 7, 5, 3]
    assert counted.sums["ModelSeconds"] == 2.5


def test_retries_and_errors_that_last() -> None:
    counted = Counted()
    world = counted.world
    world.session("go")
    failing = ModelError("model_overloaded_error", "busy", retryable=True)
    world.drive(failing)
    assert (counted.sums["Retries"], counted.sums["SessionErrors"]) == (1, 0)
    world.model.replies += [ModelError("model_request_failed_error", "no", retryable=False)]
    world.pass_waits()
    assert (counted.sums["Retries"], counted.sums["SessionErrors"], counted.sums["Turns"]) == (1, 1, 1)


def test_events_in_a_blob_are_left_out() -> None:
    world = World()
    session = world.session("go")
    world.drive(text("ok"))
    page = world.store.query(f"S#{session}", prefix="EV#")
    (key, item), *_ = page.items
    assert list(Measures().of(Transaction((Put(key, {**item, "events": None}),)))) == []


def test_what_is_remembered_is_bounded() -> None:
    measures = Measures()
    for number in range(SPANS + 10):
        measures._remember(f"span{number}", number)
    assert len(measures._began) == SPANS


def test_the_moment_of_an_id() -> None:
    class Clock:
        def now(self) -> int:
            return 1_795_000_000_123_456

    assert moment_of(SystemIds(Clock()).new("sevt")) == 1_795_000_000_123_456


@pytest.mark.parametrize("text", ["", "sevt_x", "sevt_02" + "0" * 22, "sevt_01" + "-" * 22, "toolu_0_bash"])
def test_ids_of_other_sources_have_no_moment(text: str) -> None:
    assert moment_of(text) is None
