from __future__ import annotations

import json
from typing import Any

import pytest

from mango.domain.times import SECOND, rfc3339
from mango_local.asl import Choice, DataError, Retrier, Task, UnsupportedMachine, Wait, load, matches, parse
from mango_local.orchestrator import turn_machine_path

DONE = {"Type": "Succeed"}
COMPARISON = {"Variable": "$.n", "NumericEquals": 1, "Next": "A"}


def machine(**states: Any) -> str:
    return json.dumps({"StartAt": next(iter(states)), "States": states})


def task(**fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": "work", "Next": "Done", **fields}


def test_reads_the_turn() -> None:
    turn = load(turn_machine_path())
    assert turn.start == "Round"
    assert turn.resources == {"${RoundFunctionArn}", "${TroubleFunctionArn}"}
    route = turn.states["Route"]
    assert isinstance(route, Choice)
    assert [route.choose({"next": answer}) for answer in ("round", "backoff", "end", "anything")] == [
        "Round",
        "Backoff",
        "Done",
        "Done",
    ]
    round_ = turn.states["Round"]
    assert isinstance(round_, Task)
    assert [catcher.next for catcher in round_.catchers] == ["Trouble"]


def test_what_fails_for_want_of_the_store_is_tried_again() -> None:
    round_ = load(turn_machine_path()).states["Round"]
    assert isinstance(round_, Task)
    covered = [name for name in ("StoreUnavailable", "Ambiguous") if matches(round_.retriers[0].errors, name)]
    assert covered == ["StoreUnavailable", "Ambiguous"]
    assert not matches(round_.retriers[0].errors, "KeyError")


@pytest.mark.parametrize(
    ("states", "wrong"),
    [
        ({"A": {"Type": "Parallel", "Branches": []}}, "Type 'Parallel'"),
        ({"A": {"Type": "Map"}}, "Type 'Map'"),
        ({"A": {"Type": "Pass", "Next": "Done"}, "Done": DONE}, "Type 'Pass'"),
        ({"A": {"Type": "Fail"}}, "Type 'Fail'"),
        ({"A": task(TimeoutSeconds=5), "Done": DONE}, "TimeoutSeconds"),
        ({"A": task(HeartbeatSeconds=5), "Done": DONE}, "HeartbeatSeconds"),
        ({"A": task(Parameters={}), "Done": DONE}, "Parameters"),
        ({"A": task(ResultPath="$.x"), "Done": DONE}, "ResultPath"),
        ({"A": task(QueryLanguage="JSONata"), "Done": DONE}, "QueryLanguage"),
        ({"A": {"Type": "Task", "Resource": "work", "End": True}}, "Next is missing"),
        ({"A": task(Next="Nowhere"), "Done": DONE}, "'Nowhere'"),
        ({"A": task(Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Nowhere"}]), "Done": DONE}, "'Nowhere'"),
        ({"A": task(Catch=[{"ErrorEquals": ["X"], "Next": "Done", "ResultPath": None}]), "Done": DONE}, "ResultPath"),
        ({"A": task(Retry=[{"ErrorEquals": []}]), "Done": DONE}, "ErrorEquals"),
        ({"A": task(Retry=[{"ErrorEquals": ["X"], "MaxAttempts": "3"}]), "Done": DONE}, "MaxAttempts"),
        ({"A": {"Type": "Wait", "Next": "Done"}, "Done": DONE}, "either Seconds or TimestampPath"),
        ({"A": {"Type": "Wait", "Next": "Done", "SecondsPath": "$.s"}, "Done": DONE}, "SecondsPath"),
        ({"A": {"Type": "Wait", "Next": "Done", "TimestampPath": "$.a.b"}, "Done": DONE}, "$.a.b"),
        (
            {
                "A": {
                    "Type": "Choice",
                    "Default": "A",
                    "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "A"}],
                }
            },
            "StringEquals is missing",
        ),
        ({"A": {"Type": "Choice", "Choices": []}}, "Default is missing"),
        ({"A": {"Type": "Succeed", "OutputPath": "$"}}, "OutputPath"),
    ],
)
def test_refuses_what_it_would_not_execute_as_step_functions_does(states: dict[str, Any], wrong: str) -> None:
    with pytest.raises(UnsupportedMachine) as refused:
        parse(machine(**states))
    assert wrong in str(refused.value)


def test_refuses_other_fields_of_the_machine() -> None:
    with pytest.raises(UnsupportedMachine, match="TimeoutSeconds"):
        parse(json.dumps({"StartAt": "A", "States": {"A": DONE}, "TimeoutSeconds": 1}))
    with pytest.raises(UnsupportedMachine, match="no state 'B'"):
        parse(json.dumps({"StartAt": "B", "States": {"A": DONE}}))
    with pytest.raises(UnsupportedMachine, match="not JSON"):
        parse("{")


def test_delays_grow_to_their_limit() -> None:
    retrier = Retrier(("X",), interval=1, rate=2, attempts=5, max_delay=5)
    assert [retrier.delay(attempt) for attempt in range(4)] == [1, 2, 4, 5]


def test_waits_until_the_time_in_the_data() -> None:
    wait = Wait("Done", field="retry_at")
    moment = 1_790_000_000 * SECOND + 123_456
    assert wait.until({"retry_at": rfc3339(moment)}, 0) == moment
    assert Wait("Done", seconds=1.5).until({}, 10) == 1_500_010
    for data in ({}, {"retry_at": "soon"}, {"retry_at": None}):
        with pytest.raises(DataError):
            wait.until(data, 0)
