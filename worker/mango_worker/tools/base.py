"""What every tool shares: its result, its arguments, and the way to cancel it."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mango_worker.text import valid_text

Block = dict[str, Any]
NO_OUTPUT = "(no output)"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Content blocks as they go into the result event."""

    content: tuple[Block, ...]
    is_error: bool = False


def text_result(text: str, is_error: bool = False) -> ToolResult:
    """A result of one text block; empty text becomes `(no output)`."""
    return ToolResult(({"type": "text", "text": valid_text(text) or NO_OUTPUT},), is_error)


class ToolError(Exception):
    """The call failed in a way that the model should read about; `str()` becomes the error result."""


class Cancelled(Exception):
    """The call was cancelled; `str()` is the reason for the model."""


class Cancel:
    """A switch that is thrown once, from any thread, with a reason. A limit throws it by itself.

    `limit` is in seconds from now.
    """

    def __init__(self, limit: float | None = None, limit_reason: str = "timed out") -> None:
        self._thrown = threading.Event()
        self._reason = ""
        self._deadline = None if limit is None else time.monotonic() + limit
        self._limit_reason = limit_reason
        self._lock = threading.Lock()

    def throw(self, reason: str) -> None:
        """Cancel; the first reason stays."""
        with self._lock:
            if not self._thrown.is_set():
                self._reason = reason
                self._thrown.set()

    @property
    def thrown(self) -> bool:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.throw(self._limit_reason)
        return self._thrown.is_set()

    @property
    def reason(self) -> str:
        return self._reason

    def check(self) -> None:
        """Raise Cancelled if thrown. Tools call it at least ten times a second."""
        if self.thrown:
            raise Cancelled(self._reason)


class Tool(Protocol):
    """One tool. `run` may raise ToolError, Cancelled or OSError; its arguments come from the model, unchecked."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> frozenset[str]: ...

    def run(self, arguments: "Arguments", cancel: Cancel) -> ToolResult: ...


class Arguments:
    """The input object of a call, read with the types that the tool's schema names.

    An explicit null counts as absent. Every violation is a ToolError that names the argument.
    """

    def __init__(self, values: object, allowed: frozenset[str]) -> None:
        if not isinstance(values, Mapping):
            raise ToolError("the tool input must be an object")
        unknown = sorted(valid_text(str(name)) for name in values if name not in allowed)
        if unknown:
            raise ToolError(f"unknown argument {', '.join(unknown)}; known: {', '.join(sorted(allowed))}")
        self._values = values

    def string(self, name: str) -> str:
        """A required string, possibly empty."""
        value = self.optional_string(name)
        if value is None:
            raise ToolError(f"{name} is required")
        return value

    def optional_string(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise ToolError(f"{name} must be a string")
        if "\x00" in value:
            raise ToolError(f"{name} must not hold a NUL character")
        return valid_text(value)

    def flag(self, name: str) -> bool:
        """An optional boolean, false when absent."""
        value = self._values.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise ToolError(f"{name} must be true or false")
        return value

    def optional_integer(self, name: str) -> int | None:
        value = self._values.get(name)
        return None if value is None else _integer(name, value)

    def optional_range(self, name: str) -> tuple[int, int] | None:
        """An optional pair of integers."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 2:
            raise ToolError(f"{name} must be an array of two integers")
        return _integer(name, value[0]), _integer(name, value[1])


def _integer(name: str, value: object) -> int:
    # JSON has one number type: 5.0 is as good an integer as 5, and true is none.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ToolError(f"{name} must be an integer")
    return value
