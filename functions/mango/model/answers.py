"""Builds the answers of the offline and scripted models, and plays them like a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mango.model.transcript import call_id
from mango.ports import Cancellation, Json, ModelAnswer, ModelRequest


def say(text: str) -> ModelAnswer:
    """An answer that is text and ends the turn."""
    return ModelAnswer(content=[{"type": "text", "text": text}], stop_reason="end_turn")


def use(request: ModelRequest, tools: Sequence[tuple[str, Json]], text: str = "") -> ModelAnswer:
    """An answer that calls these tools, `(name, input)` each, after a few words if there are any."""
    content: list[Json] = [{"type": "text", "text": text}] if text else []
    for index, (name, arguments) in enumerate(tools):
        content.append({"type": "tool_use", "id": call_id(request, index), "name": name, "input": arguments})
    return ModelAnswer(content=content, stop_reason="tool_use")


def play(
    answer: ModelAnswer,
    think_seconds: float,
    cancellation: Cancellation,
    on_text: Callable[[int, str], None] | None,
) -> ModelAnswer:
    """Thinks, then gives the text in pieces, as a real endpoint would. Raises `Cancelled` like one."""
    cancellation.wait(think_seconds)
    for index, block in enumerate(answer.content):
        if on_text is not None and block.get("type") == "text":
            for piece in pieces(block["text"]):
                cancellation.check()
                on_text(index, piece)
    cancellation.check()
    return answer


def pieces(text: str) -> list[str]:
    """At least two pieces, where there are two characters, that make up the text: words if it has several."""
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1][:-1]
    words = [word for word in words if word]
    if len(words) >= 2 or len(text) < 2:
        return words
    middle = len(text) // 2
    return [text[:middle], text[middle:]]
