"""Turns pydantic's complaints into the one error that clients see: the field's place, what is wrong, what is right."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from mango.domain.errors import InvalidRequest, shown

TAG_OPEN = "<"
"""Tags of unions are spelt `<tag>`, which no field is named, so that they can be left out of paths."""
UNION = "wire_union"
"""The error type of a union none of whose members fits; its message lists the members' types in quotes."""
MAX_NAMED = 12
"""Longer choices are not spelt out in a message."""
MAX_NAME = 80
"""Characters of one name in a path."""

Context = dict[str, Any]


def fault(text: str, *path: str | int) -> PydanticCustomError:
    """What a validator raises: a text ready for clients, and the place below the validated value."""
    return PydanticCustomError("wire", "{text}", {"text": text, "path": list(path)})


def invalid(error: ValidationError) -> InvalidRequest:
    """The first complaint as a 400."""
    first = error.errors(include_url=False)[0]
    path = [part for part in first["loc"] if not _is_noise(part)]
    path += first.get("ctx", {}).get("path", [])
    text = _text(first)
    given = first["input"]
    if first["type"] == UNION and isinstance(given, dict) and "`type`" in text:
        path.append("type")
        text = f"must be {one_of(_quoted(text))}" if "type" in given else "is required"
    return InvalidRequest(text, path=spelt(path) or "body")


def spelt(path: Iterable[str | int]) -> str:
    """A path as clients read it; long names are cut, so that what follows them still shows."""
    return ".".join(shown(str(part), MAX_NAME) for part in path)


def kind_of(value: Any) -> str:
    """What a JSON value is, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    names: dict[type, str] = {str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), "something else")


def _is_noise(part: str | int) -> bool:
    return isinstance(part, str) and (part == "[key]" or (part.startswith(TAG_OPEN) and part.endswith(">")))


def _text(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    wanted = _KINDS.get(kind)
    if wanted is not None:
        return f"must be {wanted}, not {_given(error['input'])}"
    bound = _BOUNDS.get(kind)
    if bound is not None:
        return bound({**context, "actual": _length(error["input"]), "noun": _noun(error["input"])})
    return str(context.get("text") or error["msg"])


_KINDS = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "null",
}


def _fewest(context: Context) -> str:
    least = context["min_length"]
    if least == 1:
        return "must not be empty"
    return f"must have at least {least} {context['noun']}"


def _most(context: Context) -> str:
    return f"must have at most {context['max_length']} {context['noun']}, has {context['actual']}"


def _noun(value: Any) -> str:
    return "characters" if isinstance(value, str) else "entries"


def _choice(context: Context) -> str:
    names = _quoted(str(context["expected"]))
    return f"must be {one_of(names)}" if len(names) <= MAX_NAMED else f"must be one of the {len(names)} known values"


def _given(value: Any) -> str:
    return str(value) if isinstance(value, float) else kind_of(value)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def _quoted(text: str) -> list[str]:
    return re.findall(r"'([^']*)'", text)


def one_of(names: list[str]) -> str:
    """`a, b or c`, each in quotes."""
    quoted = [f"'{name}'" for name in names]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else quoted[0]


def _number(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and math.isfinite(value) and value.is_integer() else str(value)


_BOUNDS: dict[str, Callable[[Context], str]] = {
    "missing": lambda _: "is required",
    "extra_forbidden": lambda _: "is not a known field; remove it",
    "string_too_short": _fewest,
    "too_short": _fewest,
    "string_too_long": _most,
    "too_long": _most,
    "literal_error": _choice,
    "greater_than_equal": lambda context: f"must be at least {_number(context['ge'])}",
    "less_than_equal": lambda context: f"must be at most {_number(context['le'])}",
}
