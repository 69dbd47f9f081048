"""The event sequences of spec mango.md 3.17, as decisions 14 to 16 and 30 to 42 correct them."""

from __future__ import annotations

import pytest

from mango.domain.errors import InvalidRequest
from mango.ports import Cancellation, ModelAnswer, ModelError, ModelRequest
from tests.support.world import World, custom_result, message, result, text, tools

OVERLOADED = ModelError("model_overloaded_error", "overloaded", retryable=True)
BASH = ("bash", {"command": "true"})
INTERRUPT = {"type": "user.interrupt"}
CUSTOM = {"type": "custom", "name": "ask", "description": "Asks.", "input_schema": {"type": "object"}}


@pytest.fixture(params=[0, 64], ids=["reads", "remembers"])
def world(request: pytest.FixtureRequest) -> World:
    return World(remember=request.param)


def test_t1_text_turn(world: World) -> None:
    session = world.session("hello")
    world.drive(text("hi"))
    assert [event["type"] for event in world.history(session)] == [
        "user.message",
        "session.status_running",
        "session.thread_status_running",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.thread_status_idle",
        "session.usage",
        "session.status_idle",
    ]
    last = world.history(session)[-1]
    assert last["stop_reason"] == {"type": "end_turn"}
    assert all(event["processed_at"] for event in world.history(session))
    assert world.thread(session).due == ""


def test_t2_worker_tool(world: World) -> None:
    session = world.session("list files")
    world.drive(tools(BASH, words="Looking."))
    (call,) = world.open_calls(session)
    world.send(session, result(call))
    world.drive(text("done"))
    assert world.types(session) == [
        "user.message",
        "session.status_running",
        "span.model_request_start",
        "agent.message",
        "agent.tool_use",
        "span.model_request_end",
        "session.status_idle",
        "user.tool_result",
        "session.status_running",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.status_idle",
    ]
    assert world.model.requests[1].messages == [
        {"role": "user", "content": [{"type": "text", "text": "list files"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "toolu_0_bash", "name": "bash", "input": {"command": "true"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_0_bash", "content": [{"type": "text", "text": "ok"}]}
            ],
        },
    ]


def test_t5_two_custom_calls_answered_one_by_one(world: World) -> None:
    session = world.session("ask twice", tools=(CUSTOM,))
    world.drive(tools(("ask", {"n": 1}), ("ask", {"n": 2})))
    first, second = world.open_calls(session)
    world.send(session, custom_result(second))
    assert world.types(session)[-2:] == ["session.status_idle", "user.custom_tool_result"]
    assert world.orchestrator.take() == []
    world.send(session, custom_result(first))
    world.drive(text("thanks"))
    assert world.types(session)[-7:] == [
        "user.custom_tool_result",
        "user.custom_tool_result",
        "session.status_running",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.status_idle",
    ]


def test_t6_message_behind_a_barrier_waits_and_is_taken_up_after_the_results(world: World) -> None:
    session = world.session("start")
    world.drive(tools(BASH))
    (sent,) = world.say(session, "and this")
    assert sent["processed_at"] is None
    assert world.history(session)[-1] == {**sent, "processed_at": None}
    (call,) = world.open_calls(session)
    world.send(session, result(call))
    world.drive(text("both done"))
    assert world.types(session)[-7:] == [
        "user.tool_result",
        "session.status_running",
        "user.message",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.status_idle",
    ]
    assert [block["type"] for block in world.model.requests[-1].messages[-1]["content"]] == ["tool_result", "text"]


def test_t7_two_messages_in_one_batch_are_two_turns_without_idle_between(world: World) -> None:
    session = world.session("A", "B")
    world.drive(text("a"), text("b"))
    assert world.types(session) == [
        "user.message",
        "session.status_running",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "user.message",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.status_idle",
    ]


def test_t8_retry_then_success(world: World) -> None:
    session = world.session("hello")
    world.drive(OVERLOADED)
    assert world.thread(session).status == "rescheduling"
    world.model.replies.append(text("hi"))
    world.pass_waits()
    assert world.types(session) == [
        "user.message",
        "session.status_running",
        "span.model_request_start",
        "span.model_request_end",
        "session.error",
        "session.status_rescheduled",
        "session.status_running",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.status_idle",
    ]
    error = next(event for event in world.history(session) if event["type"] == "session.error")
    assert error["error"] == {
        "type": "model_overloaded_error",
        "message": "overloaded",
        "retry_status": {"type": "retrying"},
    }


def test_t9_exhausted_retries_keep_what_waits_until_the_next_message(world: World) -> None:
    session = world.session("A", "B")
    world.drive(OVERLOADED)
    for _ in range(2):
        world.model.replies.append(OVERLOADED)
        world.pass_waits()
    assert world.types(session)[-4:] == [
        "span.model_request_end",
        "session.error",
        "session.status_idle",
        "user.message",
    ]
    world.sweep(3600)
    assert world.orchestrator.take() == []
    world.say(session, "C")
    world.drive(text("b"), text("c"))
    assert world.types(session)[-11:] == [
        "session.status_idle",
        "session.status_running",
        "user.message",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "user.message",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.status_idle",
    ]
    assert [e["content"][0]["text"] for e in world.history(session) if e["type"] == "user.message"] == ["A", "B", "C"]


def test_t10_permanent_failure_terminates_with_its_reason(world: World) -> None:
    session = world.session("hello")
    world.drive(ModelError("billing_error", "no credit", retryable=False))
    assert world.types(session)[-3:] == ["span.model_request_end", "session.error", "session.status_terminated"]
    with pytest.raises(InvalidRequest, match="terminated"):
        world.say(session, "more")


def test_t11_interrupt_during_a_model_call_cancels_it(world: World) -> None:
    session = world.session("think")

    def slow(request: ModelRequest, cancellation: Cancellation) -> ModelAnswer:
        world.send(session, INTERRUPT)
        cancellation.wait(30)
        raise AssertionError("was not cancelled")

    world.drive(slow)
    assert world.types(session)[-4:] == [
        "span.model_request_start",
        "span.model_request_end",
        "user.interrupt",
        "session.status_idle",
    ]
    assert world.thread(session).due == ""


def test_t12_interrupt_and_redirect_in_one_batch(world: World) -> None:
    session = world.session("think")

    def slow(request: ModelRequest, cancellation: Cancellation) -> ModelAnswer:
        world.send(session, INTERRUPT, message("rather this"))
        cancellation.wait(30)
        raise AssertionError("was not cancelled")

    world.drive(slow, text("this"))
    assert world.types(session)[-7:] == [
        "span.model_request_end",
        "user.interrupt",
        "user.message",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.status_idle",
    ]


def test_interrupt_closes_an_open_barrier_without_a_request(world: World) -> None:
    session = world.session("run")
    world.drive(tools(BASH, BASH))
    first, second = world.open_calls(session)
    world.send(session, result(first))
    world.send(session, INTERRUPT)
    assert world.types(session)[-4:] == [
        "user.tool_result",
        "user.interrupt",
        "user.tool_result",
        "session.status_idle",
    ]
    closed = [e for e in world.history(session) if e["type"] == "user.tool_result"][-1]
    assert closed["tool_use_id"] == second
    assert closed["is_error"] is True
    with pytest.raises(InvalidRequest):
        world.send(session, result(second))
    world.say(session, "go on")
    world.drive(text("ok"))
    blocks = world.model.requests[-1].messages[-1]["content"]
    assert [block["type"] for block in blocks] == ["tool_result", "tool_result", "text"]


def test_a_message_waiting_behind_the_closed_barrier_starts_a_turn(world: World) -> None:
    session = world.session("run")
    world.drive(tools(BASH))
    world.say(session, "waiting")
    world.send(session, INTERRUPT)
    world.drive(text("answer"))
    assert world.types(session)[-8:] == [
        "user.tool_result",
        "session.status_idle",
        "session.status_running",
        "user.message",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.status_idle",
    ]


def test_interrupt_of_an_idle_session_is_noted_and_starts_nothing(world: World) -> None:
    session = world.session("hello")
    world.drive(text("hi"))
    world.send(session, INTERRUPT)
    assert world.types(session)[-2:] == ["session.status_idle", "user.interrupt"]
    assert world.orchestrator.take() == []


def test_unknown_tools_are_answered_with_an_error_and_the_turn_goes_on(world: World) -> None:
    session = world.session("try")
    world.drive(tools(("launch_missiles", {})), text("never mind"))
    assert world.types(session)[3:9] == [
        "agent.tool_use",
        "span.model_request_end",
        "agent.tool_result",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
    ]
    use = next(event for event in world.history(session) if event["type"] == "agent.tool_use")
    assert use["evaluated_permission"] == "deny"


def test_denied_calls_do_not_run_and_allowed_ones_wait_for_their_result(world: World) -> None:
    ask = {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_ask"}}}
    session = world.session("run", tools=(ask,))
    world.drive(tools(BASH, BASH))
    first, second = world.open_calls(session)
    with pytest.raises(InvalidRequest, match="confirmation"):
        world.send(session, result(first))
    denied = {"type": "user.tool_confirmation", "tool_use_id": first, "result": "deny", "deny_message": "Not here."}
    world.send(session, denied)
    world.send(session, {"type": "user.tool_confirmation", "tool_use_id": second, "result": "allow"})
    assert world.orchestrator.take() == []
    world.send(session, result(second, "fine"))
    world.drive(text("done"))
    first_result, second_result = world.model.requests[-1].messages[-1]["content"]
    assert first_result["is_error"] is True
    assert first_result["content"][0]["text"].endswith("Not here.")
    assert second_result["content"][0]["text"] == "fine"
