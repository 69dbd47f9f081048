"""What providers say that cannot be told back to them as it is."""

from __future__ import annotations

import pytest

from mango.ports import ModelAnswer
from tests.support.world import World, result, text, tools

USE = {"type": "tool_use", "name": "bash", "input": {}}


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_blank_text_is_neither_shown_nor_replayed(blank: str) -> None:
    world = World()
    session = world.session("go")
    world.drive(ModelAnswer([{"type": "text", "text": blank}, {**USE, "id": "toolu_1"}], "tool_use"))
    world.send(session, result(world.open_calls(session)[0], blank))
    world.drive(ModelAnswer([{"type": "text", "text": blank}], "end_turn"))
    world.say(session, "more")
    world.drive(text("ok"))
    assert "agent.message" not in world.types(session)[:-3]
    assert world.model.requests[-1].messages == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [{**USE, "id": "toolu_1"}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}, {"type": "text", "text": "more"}],
        },
    ]


def test_calls_get_ids_of_ours_where_the_providers_are_empty_or_come_twice() -> None:
    world = World()
    session = world.session("go")
    world.drive(ModelAnswer([{**USE, "id": "call_0"}, {**USE, "id": "call_0"}, {**USE, "id": ""}], "tool_use"))
    for call in world.open_calls(session):
        world.send(session, result(call, call))
    world.drive(ModelAnswer([{**USE, "id": "call_0"}], "tool_use"))
    world.send(session, result(world.open_calls(session)[0]))
    world.drive(text("done"))
    messages = world.model.requests[-1].messages
    used = [block["id"] for message in messages for block in message["content"] if block["type"] == "tool_use"]
    answered = [
        block["tool_use_id"] for message in messages for block in message["content"] if block["type"] == "tool_result"
    ]
    assert used[0] == "call_0"
    assert all(used)
    assert len(set(used)) == 4
    assert answered == used


def test_thinking_is_replayed_verbatim_and_shown_without_its_text() -> None:
    world = World()
    session = world.session("go")
    thinking = {"type": "thinking", "thinking": "secret thoughts", "signature": "c2ln"}
    world.drive(ModelAnswer([thinking, {**USE, "id": "toolu_1"}], "tool_use"))
    assert "secret thoughts" not in str(world.history(session))
    assert "agent.thinking" in world.types(session)
    world.send(session, result(world.open_calls(session)[0]))
    world.drive(text("done"))
    assert world.model.requests[-1].messages[1]["content"][0] == thinking


def test_lone_surrogates_of_a_model_are_replaced() -> None:
    world = World()
    session = world.session("go")
    world.drive(tools(("bash", {"command": "echo \ud99c"}), words="look: \ud83c"))
    use = next(event for event in world.history(session) if event["type"] == "agent.tool_use")
    assert use["input"] == {"command": "echo �"}


def test_contradictory_answers_end_the_session_with_a_reason() -> None:
    world = World()
    session = world.session("go")
    world.drive(ModelAnswer([{"type": "text", "text": "hm"}], "tool_use"))
    error = next(event for event in world.history(session) if event["type"] == "session.error")
    assert error["error"]["type"] == "model_request_failed_error"
    assert "0 tool calls" in error["error"]["message"]
    assert world.types(session)[-1] == "session.status_terminated"
