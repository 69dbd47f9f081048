"""Inputs made to be expensive: neither memory nor answers grow beyond what was sent."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mango.domain.errors import MAX_SHOWN, InvalidRequest
from mango.domain.wire import agents, environments, events, files, query, sessions, work
from mango.domain.wire.agents import AgentCreate, AgentListQuery
from mango.domain.wire.base import WireModel, refuse_nul, refuse_surrogates
from mango.domain.wire.events import EventSend
from mango.domain.wire.tools import AgentToolset

AGENT = {"name": "a", "model": "m"}
MANY = 100_000
LONG = "z" * 1_000_000
MIB = 1024 * 1024


def peak(run: Callable[[], object]) -> int:
    """Bytes that a run held at most, beyond its input."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refusal(model: type[WireModel], value: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        model.parse(value)
    return caught.value


@pytest.mark.parametrize("look", [refuse_surrogates, refuse_nul])
def test_places_are_spelt_for_errors_only(look: Callable[[Any], None]) -> None:
    value = {"k" * 10_000: {"l" * 10_000: ["ü"] * 2_000}}
    assert peak(lambda: look(value)) < MIB


def test_schemas_with_long_names_take_no_memory() -> None:
    schema = {"type": "object", "k" * 10_000: [{"a": 1}] * 2_000}
    tool = {"type": "custom", "name": "c", "description": "d", "input_schema": schema}
    assert peak(lambda: AgentCreate.parse({**AGENT, "tools": [tool]})) < MIB


def test_the_place_of_a_surrogate_is_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        refuse_surrogates({"a": ["ü", {"b": "\ud800"}]})
    assert caught.value.path == "a.1.b"
    with pytest.raises(InvalidRequest) as caught:
        refuse_surrogates({"a": [{"\ud800": 1}]})
    assert caught.value.path == "a.0"


@pytest.mark.parametrize(
    ("model", "value", "path"),
    [
        (AgentCreate, {**AGENT, **{f"k{n}": n for n in range(MANY)}}, "k0"),
        (AgentCreate, {**AGENT, "model": {"id": "m", **{f"k{n}": n for n in range(MANY)}}}, "model.k0"),
        (AgentCreate, {**AGENT, "skills": list(range(MANY))}, "skills.0"),
        (AgentToolset, {"type": "agent_toolset_20260401", "configs": [{}] * MANY}, "configs.0.name"),
        (EventSend, {"events": [{"type": "user.message", "content": [None] * MANY}]}, "events.0.content.0"),
        (EventSend, {"events": [None] * MANY}, "events.0"),
        (environments.PackageLists, {"pip": [""] * MANY}, "pip.0"),
        (sessions.SessionCreate, {"agent": "a", "environment_id": "e", "vault_ids": [1] * MANY}, "vault_ids.0"),
    ],
)
def test_only_the_first_of_many_faults_is_kept(model: type[WireModel], value: Any, path: str) -> None:
    error: list[InvalidRequest] = []
    assert peak(lambda: error.append(refusal(model, value))) < MIB
    assert error[0].path == path


def lists(schema: Any) -> Iterator[dict[str, Any]]:
    """All list schemas inside a core schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "list":
            yield schema
        for inner in schema.values():
            yield from lists(inner)
    elif isinstance(schema, list | tuple):
        for inner in schema:
            yield from lists(inner)


def models(parent: type[WireModel] = WireModel) -> Iterator[type[WireModel]]:
    for model in parent.__subclasses__():
        yield model
        yield from models(model)


def test_every_list_stops_at_its_first_fault() -> None:
    assert {agents, environments, events, files, query, sessions, work}  # they define the models
    found = [(model, one) for model in models() for one in lists(model.__pydantic_core_schema__)]
    assert len(found) > 20
    assert [model.__name__ for model, one in found if not one.get("fail_fast")] == []


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (AgentCreate, {**AGENT, LONG: 1}),
        (AgentCreate, {**AGENT, "metadata": {LONG: "x"}}),
        (AgentCreate, {**AGENT, "multiagent": {"type": "coordinator", LONG: ["\x00"]}}),
        (AgentCreate, {**AGENT, "model": {"id": "m", LONG: {LONG: 1}}}),
        *[
            (
                AgentCreate,
                {**AGENT, "tools": [{"type": "custom", "name": "c", "description": "d", "input_schema": schema}]},
            )
            for schema in ({"type": "object", LONG: {"$ref": "x"}}, {"type": "object", "properties": {LONG: {}}})
        ],
        (EventSend, {"events": [{"type": LONG}]}),
    ],
)
def test_nobody_gets_a_megabyte_back(model: type[WireModel], value: Any) -> None:
    error = refusal(model, value)
    assert error.path is not None and len(error.path) <= MAX_SHOWN
    assert len(error.message) < 500


def test_long_names_of_parameters_are_cut() -> None:
    for values in ({LONG: ["1"]}, {LONG: ["1", "2"]}):
        with pytest.raises(InvalidRequest) as caught:
            AgentListQuery.from_query(values)
        assert len(caught.value.message) < 500


def test_a_cut_name_still_shows_what_is_wrong() -> None:
    error = refusal(AgentCreate, {**AGENT, "model": {"id": "m", LONG: 1}})
    assert error.message.startswith("model.zzz")
    assert error.message.endswith("…: is not a known field; remove it")


def test_any_message_is_bounded() -> None:
    from mango.domain.errors import MAX_MESSAGE, NotFound

    assert len(NotFound(f"file {LONG!r} was not found").message) == MAX_MESSAGE
