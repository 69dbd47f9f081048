from __future__ import annotations

import copy
from typing import Any

import pytest

from mango.model.body import request_body, request_headers
from mango.ports import Json
from tests.unit.model.conversation import BASH, ask, result, user

MARK = {"type": "ephemeral"}


def marks(body: Json) -> list[str]:
    """Places of the marks in the order of the prefix: tools, system, messages."""
    found = [f"tool {i}" for i, tool in enumerate(body.get("tools", [])) if "cache_control" in tool]
    found += ["system" for block in body.get("system", []) if "cache_control" in block]
    for m, message in enumerate(body["messages"]):
        if isinstance(message["content"], list):
            found += [f"{m}.{b}" for b, block in enumerate(message["content"]) if "cache_control" in block]
    return found


def conversation(rounds: int) -> list[Json]:
    messages = [user("go")]
    for n in range(rounds):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "bash", "input": {}}
        messages.append(
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}, call]}
        )
        messages.append(user(result(f"toolu_{n}", "ok"), "and"))
    return messages


def test_marks_of_a_long_conversation() -> None:
    body = request_body(ask(conversation(3), [BASH, BASH], system="s"), 1000)
    assert marks(body) == ["system", "4.1", "6.1"]
    assert body["messages"][6]["content"][1]["cache_control"] == MARK


def test_the_next_request_marks_where_this_one_ended() -> None:
    this, following = (marks(request_body(ask(conversation(n), [BASH]), 1000)) for n in (2, 3))
    assert this[-1] in following


@pytest.mark.parametrize(
    ("messages", "fields", "expected"),
    [
        ([user("a")], {}, ["0.0"]),
        ([user("a")], {"tools": [BASH, BASH]}, ["tool 1", "0.0"]),
        ([user("a")], {"tools": [BASH], "system": ""}, ["tool 0", "0.0"]),
        ([{"role": "user", "content": "plain"}], {}, ["0.0"]),
        ([user("a", "")], {}, ["0.0"]),
        ([user("")], {}, []),
        ([user("a"), {"role": "assistant", "content": [{"type": "text", "text": "b"}]}], {}, ["0.0"]),
    ],
)
def test_marks(messages: list[Json], fields: dict[str, Any], expected: list[str]) -> None:
    assert marks(request_body(ask(messages, **fields), 1000)) == expected


def test_the_request_stays_as_it_was() -> None:
    request = ask(conversation(3), [BASH], system="s")
    before = copy.deepcopy(request)
    request_body(request, 1000)
    assert request == before


@pytest.mark.parametrize(
    ("model", "added", "beta"),
    [
        ({"id": "m"}, {}, None),
        ({"id": "m", "effort": {"type": "high"}, "speed": "standard"}, {}, None),
        ({"id": "m", "effort": None, "speed": None}, {}, None),
        ({"id": "m", "effort": {"type": "low"}}, {"output_config": {"effort": "low"}}, None),
        ({"id": "m", "effort": "max"}, {"output_config": {"effort": "max"}}, None),
        ({"id": "m", "speed": "fast"}, {"speed": "fast"}, "fast-mode-2026-02-01"),
    ],
)
def test_effort_and_speed(model: Json, added: Json, beta: str | None) -> None:
    request = ask([user("a")], model=model)
    body = request_body(request, 1000)
    assert {key: body[key] for key in body.keys() - {"model", "max_tokens", "messages", "stream"}} == added
    assert body["model"] == "m"
    assert request_headers(request).get("anthropic-beta") == beta
