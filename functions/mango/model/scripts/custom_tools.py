"""Calls every custom tool once, all in one answer, with inputs that fit their schemas; then tells the results."""

from __future__ import annotations

from typing import Any

from mango.model.answers import say, use
from mango.model.transcript import calls, turn_start
from mango.ports import Json, ModelAnswer, ModelRequest

BUILT_IN = frozenset({"bash", "read", "write", "edit", "glob", "grep", "web_search", "web_fetch"})


def respond(request: ModelRequest) -> ModelAnswer:
    """The calls of this turn, or their results in words."""
    made = calls(request.messages[turn_start(request) :])
    if made:
        return say("\n".join(f"{call.name}: {call.result or ''}" for call in made))
    custom = [tool for tool in request.tools if tool["name"] not in BUILT_IN]
    if not custom:
        return say("no custom tool is offered to me")
    return use(request, [(tool["name"], example(tool.get("input_schema") or {})) for tool in custom])


def example(schema: Json) -> Any:
    """The simplest value that the usual parts of a JSON schema allow; objects get their required members only."""
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        members = schema.get("properties") or {}
        return {name: example({"type": "string", **members.get(name, {})}) for name in schema.get("required") or []}
    if kind == "array":
        return [example(schema.get("items") or {"type": "string"}) for _ in range(schema.get("minItems", 0))]
    simple: Json = {"string": "example", "integer": 1, "number": 1, "boolean": True}
    return simple.get(kind)
