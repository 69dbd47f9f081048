"""Decoding JSON bodies: what two parsers could read differently is refused."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any

from mango.domain.errors import ContentTooLarge, InvalidRequest
from mango.domain.wire.base import refuse_surrogates

MAX_BODY = 32 * 1024 * 1024
"""Bytes of a JSON body."""
MAX_DEPTH = 100
"""Arrays and objects inside each other."""
MAX_DIGITS = 38
"""Digits of an integer: what the table, and hardly any other reader, keeps exactly."""

MAX_VALUES = 1_000_000
"""Values in one body. What they become in memory is many times their text, and takes seconds to look through."""

_NEXT_VALUE = re.compile(rb'(?:[^",\[{]++|"(?:[^"\\]++|\\.)*+"?+|[\[{](?=\s*+[\]}]))*+(?:[,\[{]|\Z)', re.DOTALL)
"""Up to where another value begins: behind a comma, or inside of an array or object that is not empty; else the end.
Steps over texts whole, and never back, so that no body takes more than linear time."""
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD]")


class _Refused(ValueError):
    """The text is JSON, or nearly, but not taken."""


def decode(body: bytes, headers: Mapping[str, str]) -> Any:
    """The value of a non-empty body.

    Raises:
        InvalidRequest: the content type is not JSON, or the text is not JSON that everybody reads alike, or it holds
            more than `MAX_VALUES` values.
        ContentTooLarge: the body is over 32 MiB.
    """
    if len(body) > MAX_BODY:
        raise too_large()
    _check_content_type(headers.get("content-type", ""))
    _check_values(body)
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except UnicodeDecodeError:
        raise InvalidRequest("must be UTF-8", path="body") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidRequest(f"is not valid JSON: {error.msg} ({place})", path="body") from None
    except _Refused as refused:
        raise InvalidRequest(str(refused), path="body") from None
    except RecursionError:
        raise _too_deep() from None
    _check_depth(value)
    if _ESCAPED_SURROGATE.search(body):  # nothing else can decode to one
        refuse_surrogates(value)
    return value


def too_large() -> ContentTooLarge:
    return ContentTooLarge(
        f"the request body is over {MAX_BODY} bytes", details={"error_code": "request_body_too_large"}
    )


def _check_content_type(given: str) -> None:
    kind, _, parameters = given.partition(";")
    if kind.strip().lower() != "application/json":
        raise InvalidRequest(f"content-type must be application/json, not {kind.strip()[:80] or 'missing'!r}")
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "charset" and value.strip('"').lower() not in ("utf-8", "utf8"):
            raise InvalidRequest("content-type must name charset utf-8 or none")


def _check_values(body: bytes) -> None:
    """Before anything is made of them."""
    if body.count(b",") + body.count(b"[") + body.count(b"{") < MAX_VALUES:
        return
    steps = islice(_NEXT_VALUE.finditer(body), MAX_VALUES + 1, None)  # a last, empty one is found at the end
    if next(steps, None) is not None:
        raise InvalidRequest(f"holds more than {MAX_VALUES} values", path="body")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise _Refused(f"holds the key {twice[:80]!r} twice in one object")
    return value


def _constant(name: str) -> Any:
    raise _Refused(f"holds {name}, which is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused(f"holds the number {text[:40]}, which is too large")
    return value


def _int(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise _Refused(f"holds a number of {len(text)} digits; integers have at most {MAX_DIGITS}")
    return int(text)


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for part in level for inner in _inside(part)]
        if not level:
            return
    raise _too_deep()


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [inner for inner in value.values() if isinstance(inner, dict | list)]
    if isinstance(value, list):
        return [inner for inner in value if isinstance(inner, dict | list)]
    return []


def _too_deep() -> InvalidRequest:
    return InvalidRequest(f"is nested more than {MAX_DEPTH} levels deep", path="body")
