"""Whatever JSON arrives, the answer is an input or a refusal that names a place; never another exception."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mango.api.json_body import decode
from mango.domain.errors import InvalidRequest
from mango.domain.wire.agents import AgentCreate, AgentListQuery
from mango.domain.wire.base import WireModel
from mango.domain.wire.environments import EnvironmentCreate
from mango.domain.wire.events import EventListQuery, EventSend
from mango.domain.wire.query import QueryModel
from mango.domain.wire.sessions import SessionCreate, SessionListQuery
from mango.domain.wire.work import HeartbeatQuery, PollQuery, StopBody
from mango.services.agents import define

VALID: list[tuple[type[WireModel], dict[str, Any]]] = [
    (
        AgentCreate,
        {
            "name": "a",
            "model": {"id": "m", "effort": {"type": "low"}},
            "tools": [
                {
                    "type": "agent_toolset_20260401",
                    "default_config": {"enabled": False, "permission_policy": {"type": "always_ask"}},
                    "configs": [{"name": "bash", "enabled": True}],
                },
                {
                    "type": "custom",
                    "name": "c",
                    "description": "d",
                    "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                },
            ],
            "metadata": {"k": "v"},
        },
    ),
    (EnvironmentCreate, {"name": "e", "config": {"type": "self_hosted"}, "metadata": {"k": "v"}}),
    (
        SessionCreate,
        {
            "agent": {"type": "agent_with_overrides", "id": "a", "model": "m", "tools": []},
            "environment_id": "e",
            "initial_events": [{"type": "user.message", "content": [{"type": "text", "text": "hi"}]}],
        },
    ),
    (
        EventSend,
        {
            "events": [
                {"type": "user.tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "hi"}]},
                {"type": "user.tool_confirmation", "tool_use_id": "x", "result": "deny", "deny_message": "no"},
                {
                    "type": "user.message",
                    "content": [
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
                    ],
                },
            ]
        },
    ),
    (StopBody, {"force": True}),
]
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
anything = st.recursive(
    scalars | st.sampled_from(["text", "<text>", "user.message", "custom", "base64", "<string>", "[key]"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | st.just("type"), inner, max_size=4)
    ),
    max_leaves=10,
)


def places(value: Any, *path: str | int) -> list[tuple[str | int, ...]]:
    """The paths of all parts of a value."""
    found: list[tuple[str | int, ...]] = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        found += places(part, *path, key)
    return found


def changed(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """A copy with the part at the path replaced."""
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


@st.composite
def mutants(draw: st.DrawFn) -> tuple[type[WireModel], Any]:
    """A valid input of which one or two parts were replaced by anything."""
    model, value = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 2))):
        value = changed(value, draw(st.sampled_from(places(value))), draw(anything))
    return model, value


def test_the_originals_are_valid() -> None:
    for model, value in VALID:
        assert model.parse(value).to_dict() == value


@settings(max_examples=600, deadline=None)
@given(mutants())
def test_bodies(mutant: tuple[type[WireModel], Any]) -> None:
    model, value = mutant
    try:
        parsed = model.parse(value)
    except InvalidRequest as error:
        assert error.path and error.message.startswith(f"{error.path}: ")
        assert "validation error" not in error.message
        return
    assert model.parse(parsed.to_dict()) == parsed
    if isinstance(parsed, AgentCreate):
        json.dumps(define(parsed), allow_nan=False)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([AgentListQuery, EventListQuery, SessionListQuery, PollQuery, HeartbeatQuery]),
    st.dictionaries(
        st.sampled_from(["limit", "page", "types[]", "created_at[gte]", "order", "block_ms", "statuses"])
        | st.text(max_size=8),
        st.lists(st.text(max_size=12) | st.sampled_from(["5", "true", "2026-01-01"]), min_size=1, max_size=2),
        max_size=4,
    ),
)
def test_queries(model: type[QueryModel], values: dict[str, list[str]]) -> None:
    with suppress(InvalidRequest):
        model.from_query(values)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40) | st.text('[]{}",:0123456789.eE-\\udDntf ', max_size=40).map(str.encode))
def test_bytes(body: bytes) -> None:
    with suppress(InvalidRequest):
        json.dumps(decode(body, {"content-type": "application/json"}), ensure_ascii=False, allow_nan=False).encode()
