from __future__ import annotations

from pathlib import Path

import pytest

from mango.model.scripted import ScriptedModel, ScriptNotFound, find_script, script_names
from mango.model.scripts.custom_tools import example
from mango.ports import Cancellation, Json, ModelClient
from tests.unit.model.conversation import BASH, ask, converse, result, said, user, uses


def scripted(name: str) -> ModelClient:
    return ScriptedModel(name, find_script(name), think_seconds=0)


def run(name: str, arguments: Json) -> tuple[str, bool]:
    return f"ran {name} {arguments}", False


def test_the_scripts_are_found_by_name() -> None:
    assert {"echo", "ten-tools", "parallel-tools", "custom-tools", "coding-agent"} <= set(script_names())
    for name in script_names():
        assert callable(find_script(name))


@pytest.mark.parametrize(("text", "count"), [("run 10", 10), ("go", 10), ("run 3 please", 3), ("run 0", 0)])
def test_ten_tools_counts_to_what_was_asked(text: str, count: int) -> None:
    answers = converse(scripted("ten-tools"), [user(text)], [BASH], run)
    assert [use["input"] for answer in answers for use in uses(answer)] == [
        {"command": f"echo step {step}"} for step in range(1, count + 1)
    ]
    assert said(answers[-1]) == "done"
    ids = [use["id"] for answer in answers for use in uses(answer)]
    assert len(set(ids)) == count


def test_ten_tools_starts_again_with_each_request_but_not_with_a_remark() -> None:
    messages = [user("run 2")]
    first = converse(scripted("ten-tools"), messages, [BASH], run)
    messages.append(user("run 2"))
    second = converse(scripted("ten-tools"), messages, [BASH], run)
    assert [len(first), len(second)] == [3, 3]
    ids = [use["id"] for answer in first + second for use in uses(answer)]
    assert len(set(ids)) == 4
    assert said(scripted("ten-tools").request(ask([*messages, user("thanks")], [BASH]), Cancellation())) == "done"


def test_ten_tools_without_bash_says_so() -> None:
    assert "bash" in said(scripted("ten-tools").request(ask([user("run 1")]), Cancellation()))


def test_parallel_tools_calls_all_at_once() -> None:
    first, second = converse(scripted("parallel-tools"), [user("run 4")], [BASH], run)
    assert [use["input"]["command"] for use in uses(first)] == [f"echo step {n}" for n in (1, 2, 3, 4)]
    assert len({use["id"] for use in uses(first)}) == 4
    assert said(second).startswith("done: ran bash")


def test_custom_tools_calls_each_custom_tool_once_a_turn() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "note": {}}, "required": ["id"]}
    tools = [BASH, {"name": "decide", "input_schema": schema}, {"name": "escalate", "input_schema": {}}]
    messages = [user("go")]
    first, second = converse(scripted("custom-tools"), messages, tools, run)
    assert [(use["name"], use["input"]) for use in uses(first)] == [("decide", {"id": 1}), ("escalate", {})]
    assert said(second) == "decide: ran decide {'id': 1}\nescalate: ran escalate {}"
    messages.append(user("again"))
    assert len(uses(converse(scripted("custom-tools"), messages, tools, run)[0])) == 2
    assert "no custom tool" in said(scripted("custom-tools").request(ask([user("go")], [BASH]), Cancellation()))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {}),
        ({"type": "string"}, "example"),
        ({"enum": ["approve", "reject"]}, "approve"),
        ({"const": 7}, 7),
        ({"type": ["integer", "null"]}, 1),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
        ({"type": "null"}, None),
        ({"properties": {"a": {}, "b": {"type": "number"}}, "required": ["a", "b"]}, {"a": "example", "b": 1}),
    ],
)
def test_example_values(schema: Json, value: object) -> None:
    assert example(schema) == value


def test_a_remark_among_results_begins_no_new_turn() -> None:
    tools = [{"name": "decide", "input_schema": {}}]
    first = scripted("custom-tools").request(ask([user("go")], tools), Cancellation())
    (call,) = uses(first)
    messages = [user("go"), {"role": "assistant", "content": first.content}, user(result(call["id"], "ok"), "hurry")]
    assert said(scripted("custom-tools").request(ask(messages, tools), Cancellation())) == "decide: ok"


def test_a_script_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from mango.model.answers import say\n"
        "def respond(request):\n    return say('mine')\n"
        "def other(request):\n    return say('other')\n"
        "value = 1\n"
    )
    assert said(scripted(str(path)).request(ask([user("x")]), Cancellation())) == "mine"
    assert said(scripted(f"{path}:other").request(ask([user("x")]), Cancellation())) == "other"
    for wrong in (f"{path}:missing", f"{path}:value", str(tmp_path / "none.py"), "no-such-script", ""):
        with pytest.raises(ScriptNotFound):
            find_script(wrong)
