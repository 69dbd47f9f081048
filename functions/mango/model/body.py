"""Turns a `ModelRequest` into the body and headers of a Messages request."""

from __future__ import annotations

from mango.model.transcript import blocks
from mango.ports import Json, ModelRequest

DEFAULT_EFFORT = "high"
FAST_BETA = "fast-mode-2026-02-01"
_CACHED: Json = {"type": "ephemeral"}


def request_body(request: ModelRequest, max_tokens: int) -> Json:
    """The body; `max_tokens` where the request has no limit of its own.

    Sets the marks for prompt caching; changes nothing of the request itself.
    """
    body: Json = {
        "model": request.model["id"],
        "max_tokens": request.max_tokens or max_tokens,
        "messages": _with_marks(list(request.messages)),
        "stream": True,
    }
    tools = list(request.tools)
    if request.system:
        # The prefix that a mark covers is tools, then system, so one mark is enough for both.
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
    elif tools:
        tools[-1] = {**tools[-1], "cache_control": _CACHED}
    if tools:
        body["tools"] = tools
    return {**body, **_model_options(request.model)}


def request_headers(request: ModelRequest) -> dict[str, str]:
    """Headers besides those of authentication."""
    headers = {"Accept": "text/event-stream"}
    if request.model.get("speed") == "fast":
        headers["anthropic-beta"] = FAST_BETA
    return headers


def _model_options(model: Json) -> Json:
    options: Json = {}
    effort = model.get("effort")
    if isinstance(effort, dict):
        effort = effort.get("type")
    if effort and effort != DEFAULT_EFFORT:
        # Models that know no effort refuse the field, so the default is left out.
        options["output_config"] = {"effort": effort}
    if model.get("speed") == "fast":
        options["speed"] = "fast"
    return options


def _with_marks(messages: list[Json]) -> list[Json]:
    """Marks the end of the last two user messages.

    The last mark writes what the next request will read. The one before is where the previous request ended, so its
    prefix is found however many blocks were added since.
    """
    left = 2
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user":
            messages[index] = _with_mark(messages[index])
            left -= 1
            if not left:
                break
    return messages


def _with_mark(message: Json) -> Json:
    content = blocks(message)
    for index in range(len(content) - 1, -1, -1):
        if content[index].get("type") != "text" or content[index].get("text"):  # an empty text cannot carry a mark
            content[index] = {**content[index], "cache_control": _CACHED}
            return {**message, "content": content}
    return message
