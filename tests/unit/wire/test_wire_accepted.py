"""Inputs that are taken, and what becomes of them."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from mango.domain import tools
from mango.domain.errors import InvalidRequest
from mango.domain.wire.agents import AgentCreate, resolve_model
from mango.domain.wire.base import refuse_surrogates
from mango.domain.wire.events import EventListQuery, EventSend, EventType
from mango.domain.wire.sessions import SessionCreate, SessionListQuery
from mango.services.agents import define

Json = dict[str, Any]
TOOLSET = "agent_toolset_20260401"
NAMES = ["bash", "edit", "read", "write", "glob", "grep", "web_fetch", "web_search"]
CUSTOM: Json = {"type": "custom", "name": "look_up", "description": "d", "input_schema": {"type": "object"}}


def snapshot(*given: Json) -> Json:
    return define(AgentCreate.parse({"name": "a", "model": "m", "tools": list(given)}))


def toolset(**fields: Any) -> Json:
    return {"type": TOOLSET, **fields}


@pytest.mark.parametrize(
    ("model", "effort", "speed"),
    [
        ("m", None, "standard"),
        ({"id": "m"}, None, "standard"),
        ({"id": "m", "effort": "low", "speed": "fast"}, {"type": "low"}, "fast"),
        ({"id": "m", "effort": {"type": "max"}, "speed": None, "inference_geo": None}, {"type": "max"}, "standard"),
    ],
)
def test_models_are_resolved(model: Any, effort: Json | None, speed: str) -> None:
    parsed = AgentCreate.parse({"name": "a", "model": model})
    assert resolve_model(parsed.model) == {"id": "m", "effort": effort, "inference_geo": None, "speed": speed}


def test_every_tool_gets_its_config() -> None:
    allow, ask = {"type": "always_allow"}, {"type": "always_ask"}
    (plain,) = snapshot(toolset())["tools"]
    assert plain["default_config"] == {"enabled": True, "permission_policy": allow}
    assert [config["name"] for config in plain["configs"]] == NAMES
    assert all(c["enabled"] and c["permission_policy"] == allow and c["type"] == c["name"] for c in plain["configs"])
    (asking,) = snapshot(
        toolset(
            default_config={"enabled": False, "permission_policy": ask},
            configs=[{"name": "bash", "enabled": True}, {"name": "read", "permission_policy": allow, "enabled": None}],
        )
    )["tools"]
    by_name = {config["name"]: config for config in asking["configs"]}
    assert (by_name["bash"]["enabled"], by_name["bash"]["permission_policy"]) == (True, ask)
    assert (by_name["read"]["enabled"], by_name["read"]["permission_policy"]) == (False, allow)
    assert (by_name["glob"]["enabled"], by_name["glob"]["permission_policy"]) == (False, ask)


def test_web_tools_are_echoed_and_not_offered() -> None:
    agent = snapshot(toolset(), CUSTOM)
    offered = tools.model_tools(agent)
    assert [one["name"] for one in offered] == ["bash", "edit", "read", "write", "glob", "grep", "look_up"]
    assert all(set(one) == {"name", "description", "input_schema"} for one in offered)
    assert tools.classify(agent, "web_search") is None
    off = {"name": "web_search", "enabled": False, "allowed_domains": ["a.org"]}
    assert snapshot(toolset(configs=[off]))["tools"][0]["configs"][7]["allowed_domains"] == ["a.org"]


def test_calls_are_told_apart() -> None:
    ask = {"name": "bash", "permission_policy": {"type": "always_ask"}}
    agent = snapshot(toolset(configs=[ask, {"name": "grep", "enabled": False}]), CUSTOM)
    found = {name: tools.classify(agent, name) for name in ("bash", "read", "grep", "look_up", "nothing")}
    assert found == {"bash": "worker", "read": "worker", "grep": None, "look_up": "custom", "nothing": None}
    assert tools.permission(agent, "bash") == "always_ask"
    assert tools.permission(agent, "read") == "always_allow"
    assert tools.permission(agent, "look_up") == "always_allow"
    assert tools.model_tools(snapshot()) == []


def test_worker_tools_have_the_official_inputs() -> None:
    wanted = {
        "bash": ({"command", "restart", "timeout_ms"}, set()),
        "edit": ({"file_path", "old_string", "new_string", "replace_all"}, {"file_path", "old_string", "new_string"}),
        "read": ({"file_path", "view_range"}, {"file_path"}),
        "write": ({"file_path", "content"}, {"file_path", "content"}),
        "glob": ({"pattern", "path"}, {"pattern"}),
        "grep": ({"pattern", "path"}, {"pattern"}),
    }
    schemas = {name: tool["input_schema"] for name, tool in tools.WORKER_TOOLS.items()}
    assert {n: (set(s["properties"]), set(s.get("required", []))) for n, s in schemas.items()} == wanted


def test_omitted_and_null_stay_apart() -> None:
    body: Json = {"agent": {"type": "agent_with_overrides", "id": "a", "tools": None}, "environment_id": "e"}
    parsed = SessionCreate.parse({**body, "title": None})
    assert parsed.to_dict() == {**body, "title": None}
    event: Json = {"type": "user.tool_result", "tool_use_id": "x"}
    assert EventSend.parse({"events": [event]}).to_dict() == {"events": [event]}


def test_tool_output_may_hold_what_messages_may_not() -> None:
    content = [
        {"type": "text", "text": "\x00\x1b["},
        {"type": "text", "text": ""},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
        {
            "type": "search_result",
            "source": "https://a.org",
            "title": "t",
            "content": [{"type": "text", "text": "x"}],
            "citations": {"enabled": True},
        },
    ]
    events = [
        {"type": "user.tool_result", "tool_use_id": "x", "content": content, "is_error": None},
        {"type": "user.custom_tool_result", "custom_tool_use_id": "x", "content": []},
    ]
    assert EventSend.parse({"events": events}).to_dict()["events"] == events


def test_plain_documents_and_all_other_events() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "x"}
    events: list[Json] = [
        {"type": "user.message", "content": [{"type": "document", "source": source, "title": "t", "context": None}]},
        {"type": "user.interrupt", "session_thread_id": None},
        {"type": "user.tool_confirmation", "tool_use_id": "x", "result": "deny", "deny_message": "no"},
    ]
    assert EventSend.parse({"events": events}).to_dict()["events"] == events


def test_limits_themselves_are_accepted() -> None:
    AgentCreate.parse(
        {
            "name": "x" * 256,
            "model": "m",
            "description": "x" * 2048,
            "system": "x" * 100_000,
            "metadata": {f"{n}".rjust(64, "k"): "x" * 512 for n in range(16)},
            "tools": [{**CUSTOM, "name": f"n{n}"} for n in range(256)],
            "mcp_servers": [],
            "skills": [],
            "multiagent": None,
        }
    )
    EventSend.parse({"events": [{"type": "user.interrupt"}] * 100})


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2026-01-01", 1_767_225_600_000_000),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000_000),
        ("2026-01-01t00:00:00.5z", 1_767_225_600_500_000),
        ("2026-01-01T00:00:00", 1_767_225_600_000_000),
        ("2026-01-01 02:00:00.123456+02:00", 1_767_225_600_123_456),
        ("2026-01-01T00:00:00.123456789Z", 1_767_225_600_123_456),
        ("0001-01-01T00:00:00+23:59", 0),
        ("9999-12-31T23:59:59.999999-23:59", 253_402_300_799_999_999),
    ],
)
def test_points_in_time(text: str, micros: int) -> None:
    assert EventListQuery.from_query({"created_at[lte]": [text]}).created_at_lte == micros


def test_lists_and_old_urls() -> None:
    query = SessionListQuery.from_query({"statuses[]": ["idle"], "statuses": ["running"], "beta": ["true"]})
    assert query.statuses == ["idle", "running"]
    assert (query.limit, query.order, query.include_archived) == (100, "desc", False)
    assert len(get_args(EventType)) == 41


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ({"a": [{"b": "\ud800"}]}, "a.0.b"),
        ({"a": {"\udfff": 1}}, "a"),
        ({"\udfff": 1}, "body"),
        ("\ud83d", "body"),
    ],
)
def test_lone_surrogates_are_found(value: Any, at: str) -> None:
    refuse_surrogates({"fine": ["🦊", "\ud83e\udd8a".encode("utf-16", "surrogatepass").decode("utf-16"), 1, None]})
    with pytest.raises(InvalidRequest) as caught:
        refuse_surrogates(value)
    assert caught.value.message == f"{at}: holds a lone surrogate; text must be valid Unicode"
