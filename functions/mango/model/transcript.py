"""Reads a request's transcript: who said what, which tools were called and what came back.

The scripted models derive their next answer from nothing but this, so a request that is made again after a crash
gets the same answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mango.ports import Json, ModelRequest


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the transcript and what came back: `result` is None while nothing did."""

    id: str
    name: str
    input: Json
    result: str | None = None
    failed: bool = False


def blocks(message: Json) -> list[Json]:
    """The message's content as blocks; a plain string is one text block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or [] if isinstance(block, dict)]


def text_of(content: Any) -> str:
    """The text of a tool result's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    parts = [
        block.get("text", "") for block in content or [] if isinstance(block, dict) and block.get("type") == "text"
    ]
    return "\n".join(parts)


def user_texts(request: ModelRequest) -> list[tuple[int, str]]:
    """What the user wrote, oldest first, each with the index of its message; a message's blocks are joined."""
    found = []
    for index, message in enumerate(request.messages):
        if message.get("role") == "user":
            parts = [block.get("text", "") for block in blocks(message) if block.get("type") == "text"]
            if parts:
                found.append((index, "\n".join(parts)))
    return found


def last_user_text(request: ModelRequest) -> str:
    """The user's latest words, or the empty string."""
    texts = user_texts(request)
    return texts[-1][1] if texts else ""


def turn_start(request: ModelRequest) -> int:
    """Index of the message that began the current turn: the last one of the user that carries no tool result.

    A text that comes along with tool results was sent while the turn was running; it begins nothing new.
    """
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        if message.get("role") == "user" and not any(b.get("type") == "tool_result" for b in blocks(message)):
            return index
    return 0


def calls(messages: Iterable[Json]) -> list[Call]:
    """The tool calls of these messages in order, with their results."""
    found: dict[str, Call] = {}
    for message in messages:
        for block in blocks(message):
            if block.get("type") == "tool_use":
                found[block["id"]] = Call(block["id"], block["name"], block.get("input") or {})
            elif block.get("type") == "tool_result" and block.get("tool_use_id") in found:
                call = found[block["tool_use_id"]]
                result, failed = text_of(block.get("content")), bool(block.get("is_error"))
                found[call.id] = Call(call.id, call.name, call.input, result, failed)
    return list(found.values())


def has_tool_result(request: ModelRequest) -> bool:
    """Whether any tool result is in the transcript."""
    return any(block.get("type") == "tool_result" for message in request.messages for block in blocks(message))


def offers(request: ModelRequest, name: str) -> bool:
    """Whether the request offers a tool of this name."""
    return any(tool.get("name") == name for tool in request.tools)


def call_id(request: ModelRequest, index: int) -> str:
    """Id of the answer's tool call number `index`: the same for the same place in the same thread, else another.

    The previous call's id is part of it, so that ids stay unique when the transcript was shortened meanwhile.
    """
    previous = [block["id"] for m in request.messages for block in blocks(m) if block.get("type") == "tool_use"][-1:]
    place = "\n".join([request.session_id, request.thread_id, str(len(request.messages)), *previous, str(index)])
    return "toolu_" + hashlib.sha256(place.encode()).hexdigest()[:24]
