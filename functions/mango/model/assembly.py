"""Puts a stream of Messages events together to one complete answer, losslessly; half an answer is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from mango.ports import Json, ModelAnswer, ModelUsage

SIZE_LIMIT = 4 * 1024 * 1024
"""Bytes of an answer; more than any model says, and what keeps a broken endpoint from filling the memory."""

# Which field of its block each kind of delta continues. Partial JSON is kept apart until the block is complete.
_TEXT_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_USAGE_FIELDS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class MalformedStream(ValueError):
    """The events do not make up an answer."""


class CutOff(ValueError):
    """The answer ended at its token limit in the middle of a tool call."""


class Assembly:
    """Takes the events in order; `answer` is set by the one that completes it."""

    def __init__(self, on_text: Callable[[int, str], None] | None = None) -> None:
        self.answer: ModelAnswer | None = None
        self._on_text = on_text
        self._blocks: list[Json] = []
        self._open: Json | None = None
        self._parts: dict[str, list[str]] = {}
        self._started = False
        self._stop: Json = {}
        self._usage: dict[str, int] = {}
        self._size = 0
        self._broken: MalformedStream | None = None
        """What is wrong with a tool call's input; whether it was cut off is seen at the end."""

    def take(self, event: Any) -> None:
        """Takes one event.

        Raises:
            MalformedStream: it cannot come at this place, or is no event.
            CutOff: the answer ends in the middle of a tool call, at its token limit.
        """
        if not isinstance(event, dict):
            raise MalformedStream("an event is no object")
        kind = event.get("type")
        if kind == "message_start":
            self._start(event)
        elif kind in ("content_block_start", "content_block_delta", "content_block_stop"):
            self._block_event(kind, event)
        elif kind == "message_delta":
            self._stop.update(_object(event, "delta"))
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self._finish()
        # Others are skipped: the protocol lets endpoints add kinds of events.

    def _start(self, event: Json) -> None:
        if self._started:
            raise MalformedStream("a second message begins")
        self._started = True
        self._count(_object(event, "message").get("usage"))

    def _block_event(self, kind: str, event: Json) -> None:
        begins = kind == "content_block_start"
        if not self._started or begins != (self._open is None):
            raise MalformedStream(f"{kind} comes out of place")
        if event.get("index") != len(self._blocks):
            raise MalformedStream(f"{kind} is for another block")
        if self._open is None:
            self._open = dict(_object(event, "content_block"))
            self._parts = {}
            self._grow(json.dumps(self._open))
            if self._open.get("type") == "text" and self._open.get("text"):
                self._hear(self._open["text"])
        elif kind == "content_block_delta":
            self._delta(_object(event, "delta"))
        else:
            self._close(self._open)

    def _delta(self, delta: Json) -> None:
        kind = delta.get("type")
        if kind == "citations_delta":
            self._grow(json.dumps(delta))
            assert self._open is not None
            self._open["citations"] = [*(self._open.get("citations") or []), delta.get("citation")]
            return
        field = "partial_json" if kind == "input_json_delta" else _TEXT_DELTAS.get(str(kind))
        if field is None or not isinstance(delta.get(field), str):
            # What cannot be kept cannot be replayed, and a transcript with a gap would be refused later.
            raise MalformedStream(f"a delta of unknown kind {str(kind)[:40]!r}")
        self._grow(delta[field])
        self._parts.setdefault(field, []).append(delta[field])
        if field == "text" and delta[field]:
            self._hear(delta[field])

    def _close(self, block: Json) -> None:
        for field, parts in self._parts.items():
            text = "".join(parts)
            if field == "partial_json":
                if text.strip():
                    self._read_input(block, text)
            else:
                block[field] = block.get(field, "") + text
        if block.get("type") == "tool_use":
            named = isinstance(block.get("id"), str) and isinstance(block.get("name"), str)
            if not named or not isinstance(block.get("input"), dict):
                raise MalformedStream("a tool call lacks its id, name or input")
        self._blocks.append(block)
        self._open = None

    def _read_input(self, block: Json, text: str) -> None:
        try:
            block["input"] = _tool_input(text)
        except MalformedStream as broken:
            self._broken = broken

    def _finish(self) -> None:
        reason = self._stop.get("stop_reason")
        calling = self._broken is not None or (self._open is not None and self._open.get("type") == "tool_use")
        if reason == "max_tokens" and calling:
            raise CutOff
        if self._broken is not None:
            raise self._broken
        if self._open is not None or not isinstance(reason, str) or not reason:
            raise MalformedStream("the message ends unfinished")
        try:
            json.dumps(self._blocks, ensure_ascii=False, allow_nan=False).encode()
        except ValueError:
            raise MalformedStream("the answer holds text or numbers that cannot be stored") from None
        details = self._stop.get("stop_details")
        self.answer = ModelAnswer(
            content=self._blocks,
            stop_reason=reason,
            usage=ModelUsage(**self._usage),
            stop_details=details if isinstance(details, dict) else None,
        )

    def _hear(self, text: str) -> None:
        if self._on_text is not None:
            self._on_text(len(self._blocks), text)

    def _grow(self, text: str) -> None:
        self._size += len(text)
        if self._size > SIZE_LIMIT:
            raise MalformedStream("the answer is longer than 4 MiB")

    def _count(self, usage: Any) -> None:
        """Later numbers replace earlier ones: they are totals so far. A null says nothing."""
        for field in _USAGE_FIELDS:
            value = usage.get(field) if isinstance(usage, dict) else None
            if isinstance(value, int) and value >= 0:
                self._usage[field] = value


def _object(event: Json, field: str) -> Json:
    value = event.get(field)
    if not isinstance(value, dict):
        raise MalformedStream(f"{event.get('type')} has no {field}")
    return value


def _tool_input(text: str) -> Json:
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise MalformedStream("a tool call's input is no JSON") from None
    if not isinstance(value, dict):
        raise MalformedStream("a tool call's input is no object")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")
