"""Builds transcripts for the tests of the model clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mango.ports import Cancellation, Json, ModelAnswer, ModelClient, ModelRequest

BASH: Json = {"name": "bash", "description": "Runs a command.", "input_schema": {"type": "object"}}
CODING_TOOLS: list[Json] = [{**BASH, "name": name} for name in ("bash", "read", "write", "edit", "glob", "grep")]


def ask(messages: Sequence[Json], tools: Sequence[Json] = (), **fields: Any) -> ModelRequest:
    """A request with these messages."""
    return ModelRequest(
        **{"model": {"id": "m"}, "system": None, "tools": tools, "messages": messages, "session_id": "sesn_1", **fields}
    )


def user(*content: str | Json) -> Json:
    """A message of the user; strings become text blocks."""
    return {"role": "user", "content": [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]}


def assistant(answer: ModelAnswer) -> Json:
    """The answer as it stands in the transcript."""
    return {"role": "assistant", "content": answer.content}


def result(tool_use_id: str, text: str, failed: bool = False) -> Json:
    """A tool result block."""
    content = [{"type": "text", "text": text}]
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": failed}


def uses(answer: ModelAnswer) -> list[Json]:
    """The answer's tool calls."""
    return [block for block in answer.content if block["type"] == "tool_use"]


def said(answer: ModelAnswer) -> str:
    """The answer's text."""
    return "\n".join(block["text"] for block in answer.content if block["type"] == "text")


def converse(
    client: ModelClient, messages: list[Json], tools: Sequence[Json], run: Callable[[str, Json], tuple[str, bool]]
) -> list[ModelAnswer]:
    """Asks until the turn ends, running each tool call; appends what is said to `messages`, returns the answers.

    Each request is made twice, as after a crash, and must get the same answer.
    """
    answers = []
    while True:
        answer = client.request(ask(messages, tools), Cancellation())
        assert client.request(ask(messages, tools), Cancellation()) == answer
        answers.append(answer)
        messages.append(assistant(answer))
        assert len(answers) < 200, "the script does not end"
        if answer.stop_reason != "tool_use":
            return answers
        messages.append(user(*(result(use["id"], *run(use["name"], use["input"])) for use in uses(answer))))
