"""Durations as operators write them."""

import re

from mango_worker.errors import WorkerError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")


def parse_duration(text: str) -> float:
    """Seconds in `text`: `90`, `90s`, `1m`, `1m30s`, `500ms`, `1h`. Must be more than zero."""
    total, position = 0.0, 0
    stripped = text.strip().lower()
    while match := _PART.match(stripped, position):
        total += float(match[1]) * _UNITS[match[2]]
        position = match.end()
    if position != len(stripped) or total <= 0:
        raise WorkerError(f"{text!r} is not a duration; write for example 60s, 1m or 500ms")
    return total
