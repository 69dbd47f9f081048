"""Cursors of lists: opaque to clients, and refused by every list but the one they came from."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from mango.domain.errors import InvalidRequest
from mango.domain.ledger import dump_json

Position = str | int | list[str | int]
"""Where a list goes on: whatever its service needs to find the place again."""

_DIGEST_LENGTH = 16
MAX_CURSOR = 1024


@dataclass(frozen=True, slots=True)
class Listing:
    """What a cursor is bound to. A place in one listing means nothing in another.

    The binding is no secret: a forged cursor could only name a place in a list its holder may read anyway.
    """

    kind: str
    workspace_id: str
    parent: str = ""
    order: str = ""
    filters: dict[str, Any] = field(default_factory=dict)

    def cursor(self, position: Position) -> str:
        """The text that continues this listing after the position."""
        text = dump_json([self._digest(position), position])
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def position(self, cursor: str) -> Position:
        """The inverse.

        Raises:
            InvalidRequest: it is no cursor of this listing.
        """
        try:
            if len(cursor) > MAX_CURSOR:
                raise ValueError
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            digest, position = json.loads(raw)
        except (ValueError, TypeError, RecursionError, binascii.Error):
            raise _invalid() from None
        if not _is_position(position) or digest != self._digest(position):
            raise _invalid()
        place: Position = position
        return place

    def text_position(self, cursor: str | None) -> str | None:
        """For listings whose positions are texts; None starts at the beginning."""
        if cursor is None:
            return None
        position = self.position(cursor)
        if not isinstance(position, str):
            raise _invalid()
        return position

    def _digest(self, position: Position) -> str:
        bound = [self.kind, self.workspace_id, self.parent, self.order, sorted(self.filters.items()), position]
        return hashlib.sha256(dump_json(bound).encode()).hexdigest()[:_DIGEST_LENGTH]


def _is_position(value: Any) -> bool:
    if isinstance(value, list):
        return all(type(part) in (str, int) for part in value)
    return type(value) in (str, int)


def _invalid() -> InvalidRequest:
    return InvalidRequest("invalid page cursor", path="page")


def check_limit(limit: int | None, default: int, maximum: int) -> int:
    """The number of entries of a page; more than the maximum is refused, not cut."""
    if limit is None:
        return default
    if not 1 <= limit <= maximum:
        raise InvalidRequest(f"must be a whole number from 1 to {maximum}", path="limit")
    return limit
