from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mango.domain.times import SECOND, rfc3339
from mango.domain.transaction import StoreUnavailable
from mango.system import SystemClock
from mango_local.asl import Data, Machine, UnsupportedMachine, parse
from mango_local.orchestrator import LocalOrchestrator

RETRY = [{"ErrorEquals": ["StoreUnavailable"], "IntervalSeconds": 0.01, "MaxAttempts": 2, "BackoffRate": 1}]
CATCH = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Trouble"}]
TURN = {
    "StartAt": "Round",
    "States": {
        "Round": {"Type": "Task", "Resource": "round", "Next": "Route", "Retry": RETRY, "Catch": CATCH},
        "Route": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.next", "StringEquals": "round", "Next": "Round"},
                {"Variable": "$.next", "StringEquals": "backoff", "Next": "Backoff"},
            ],
            "Default": "Done",
        },
        "Backoff": {"Type": "Wait", "TimestampPath": "$.retry_at", "Next": "Round"},
        "Trouble": {"Type": "Task", "Resource": "trouble", "Next": "Done"},
        "Done": {"Type": "Succeed"},
    },
}


class Tasks:
    """Answers of the tasks, in order: data, or an exception; and what they were called with."""

    def __init__(self, *answers: Data | Exception | Callable[[], Data]) -> None:
        self.answers = list(answers)
        self.rounds: list[Data] = []
        self.troubles: list[Data] = []
        self.times: list[float] = []

    def round(self, data: Data) -> Data:
        self.rounds.append(data)
        self.times.append(time.monotonic())
        answer = self.answers.pop(0) if self.answers else {"next": "end"}
        if isinstance(answer, Exception):
            raise answer
        return {**data, **(answer if isinstance(answer, dict) else answer())}

    def trouble(self, data: Data) -> Data:
        self.troubles.append(data)
        return data


@pytest.fixture
def machine() -> Machine:
    return parse(json.dumps(TURN))


Begin = Callable[..., LocalOrchestrator]


@pytest.fixture
def begin(machine: Machine) -> Iterator[Begin]:
    begun: list[LocalOrchestrator] = []

    def make(tasks: Tasks, workers: int = 4) -> LocalOrchestrator:
        orchestrator = LocalOrchestrator(SystemClock(), machine=machine, workers=workers)
        orchestrator.begin({"round": tasks.round, "trouble": tasks.trouble})
        begun.append(orchestrator)
        return orchestrator

    yield make
    for each in begun:
        each.stop(1)


def ended(orchestrator: LocalOrchestrator) -> bool:
    return eventually(lambda: not orchestrator.running)


def eventually(condition: Callable[[], Any], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.002)
    return False


def test_goes_round_until_nothing_is_owed(begin: Begin) -> None:
    tasks = Tasks({"next": "round"}, {"next": "round"}, {"next": "end"})
    orchestrator = begin(tasks)
    orchestrator.start("sesn_1", "sthr_1", 7)
    assert ended(orchestrator)
    assert len(tasks.rounds) == 3
    assert tasks.rounds[0] == {"session_id": "sesn_1", "thread_id": "sthr_1", "execution": "sthr_1-7"}


def test_waits_until_the_time_without_a_thread(begin: Begin) -> None:
    def backoff() -> Data:
        return {"next": "backoff", "retry_at": rfc3339(SystemClock().now() + SECOND // 5)}

    tasks = Tasks(backoff)
    orchestrator = begin(tasks, workers=1)
    orchestrator.start("sesn_1", "sthr_1", 1)
    assert eventually(lambda: len(tasks.rounds) == 1)
    orchestrator.start("sesn_2", "sthr_2", 1)
    assert eventually(lambda: len(tasks.rounds) == 2)
    assert orchestrator.running == {"sthr_1-1"}
    assert ended(orchestrator)
    assert len(tasks.rounds) == 3
    assert tasks.times[2] - tasks.times[0] >= 0.2


def test_tries_transient_errors_again_and_counts_anew_in_the_next_state(begin: Begin) -> None:
    lost = StoreUnavailable("gone")
    tasks = Tasks(lost, lost, {"next": "round"}, lost, lost, {"next": "end"})
    orchestrator = begin(tasks)
    orchestrator.start("sesn_1", "sthr_1", 1)
    assert ended(orchestrator)
    assert (len(tasks.rounds), tasks.troubles) == (6, [])


def test_catches_what_goes_on_failing(begin: Begin, caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks(*[StoreUnavailable("gone")] * 3)
    orchestrator = begin(tasks)
    orchestrator.start("sesn_1", "sthr_1", 1)
    assert ended(orchestrator)
    assert len(tasks.rounds) == 3
    (trouble,) = tasks.troubles
    assert trouble["error"] == {"Error": "StoreUnavailable", "Cause": "gone"}
    assert trouble["execution"] == "sthr_1-1"


def test_catches_at_once_what_is_not_transient(begin: Begin, caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks(KeyError("bug"))
    orchestrator = begin(tasks)
    orchestrator.start("sesn_1", "sthr_1", 1)
    assert ended(orchestrator)
    assert (len(tasks.rounds), len(tasks.troubles)) == (1, 1)
    assert any(record.exc_info for record in caplog.records)


def test_an_execution_that_fails_for_good_ends(begin: Begin, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Tasks):
        def trouble(self, data: Data) -> Data:
            raise StoreUnavailable("still gone")

    orchestrator = begin(Broken(ValueError("bug"), {"next": "backoff"}))
    with caplog.at_level(logging.ERROR, "mango.orchestrator"):
        orchestrator.start("sesn_1", "sthr_1", 1)
        assert ended(orchestrator)
        orchestrator.start("sesn_1", "sthr_1", 2)
        assert ended(orchestrator)
    assert "there is no $.retry_at" in caplog.text


def test_a_name_runs_once_at_a_time_and_may_run_again(begin: Begin) -> None:
    go = threading.Event()

    def slow() -> Data:
        go.wait(5)
        return {"next": "end"}

    tasks = Tasks(slow)
    orchestrator = begin(tasks)
    orchestrator.start("sesn_1", "sthr_1", 1)
    assert eventually(lambda: tasks.rounds)
    orchestrator.start("sesn_1", "sthr_1", 1)
    orchestrator.start("sesn_1", "sthr_1", 2)
    assert eventually(lambda: len(tasks.rounds) == 2)
    go.set()
    assert ended(orchestrator)
    assert [data["execution"] for data in tasks.rounds] == ["sthr_1-1", "sthr_1-2"]
    orchestrator.start("sesn_1", "sthr_1", 1)
    assert ended(orchestrator)
    assert len(tasks.rounds) == 3


def test_queues_beyond_its_threads_and_once_for_each_thread(begin: Begin) -> None:
    go = threading.Event()
    lock, now, most = threading.Lock(), 0, 0

    class Counting(Tasks):
        def round(self, data: Data) -> Data:
            nonlocal now, most
            with lock:
                now, most = now + 1, max(most, now + 1)
            go.wait(5)
            with lock:
                now -= 1
            return super().round(data)

    tasks = Counting()
    orchestrator = begin(tasks, workers=3)
    for number in range(10):
        orchestrator.start("sesn_1", f"sthr_{number}", 1)
    assert eventually(lambda: now == 3)
    for number in range(10):
        orchestrator.start("sesn_1", f"sthr_{number}", 2)  # the sweeper, which takes them for lost
    assert len(orchestrator.running) == 13
    go.set()
    assert ended(orchestrator)
    assert (len(tasks.rounds), most) == (13, 3)


def test_long_turns_take_turns(begin: Begin) -> None:
    both = threading.Event()

    def first() -> Data:
        both.wait(10)
        return {"next": "round"}

    tasks = Tasks(first, *[{"next": "round"}] * 5)
    orchestrator = begin(tasks, workers=1)
    orchestrator.start("sesn_1", "sthr_1", 1)
    orchestrator.start("sesn_2", "sthr_2", 1)
    both.set()
    assert ended(orchestrator)
    assert len({data["execution"] for data in tasks.rounds[:4]}) == 2


def test_stops_in_bounded_time_and_takes_nothing_more(begin: Begin) -> None:
    go = threading.Event()

    def slow() -> Data:
        go.wait(10)
        return {"next": "round"}

    tasks = Tasks(slow)
    orchestrator = begin(tasks)
    orchestrator.start("sesn_1", "sthr_1", 1)
    assert eventually(lambda: tasks.rounds)
    began = time.monotonic()
    assert orchestrator.stop(0.2) == 1
    assert time.monotonic() - began < 1
    orchestrator.start("sesn_2", "sthr_2", 1)
    go.set()
    time.sleep(0.05)
    assert len(tasks.rounds) == 1


def test_stop_waits_for_a_round_that_ends_in_time(begin: Begin) -> None:
    def short() -> Data:
        time.sleep(0.1)
        return {"next": "round"}

    tasks = Tasks(short)
    orchestrator = begin(tasks)
    orchestrator.start("sesn_1", "sthr_1", 1)
    assert eventually(lambda: tasks.rounds)
    assert orchestrator.stop(5) == 0


def test_knows_all_its_tasks_or_does_not_begin(machine: Machine) -> None:
    orchestrator = LocalOrchestrator(SystemClock(), machine=machine)
    with pytest.raises(UnsupportedMachine, match="trouble"):
        orchestrator.begin({"round": Tasks().round})
    orchestrator.start("sesn_1", "sthr_1", 1)
    assert not orchestrator.running
