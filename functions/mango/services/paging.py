"""Cursors of lists: opaque to clients, and refused by every list but the one they came from."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from mango.domain.errors import InvalidRequest
from mango.domain.ledger import dump_json

_DIGEST_LENGTH = 16
MAX_CURSOR = 2048


@dataclass(frozen=True, slots=True)
class Cursors:
    """The cursors of one listing, bound to everything that makes it this listing and no other.

    The binding is no secret: a forged cursor could only name a place in a list that its holder may read anyway.

    Attributes:
        kind: what is listed, `agents`.
        parent: whose parts are listed, where they are parts.
        filters: the filters of the request, as JSON.
    """

    kind: str
    workspace_id: str
    parent: str = ""
    filters: dict[str, Any] = field(default_factory=dict)
    order: str = ""

    def encode(self, position: dict[str, Any]) -> str:
        """The text that continues this listing at a position, which may be any JSON."""
        text = dump_json([self._digest(position), position])
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def decode(self, cursor: str) -> dict[str, Any]:
        """The inverse.

        Raises:
            InvalidRequest: it is no cursor of this listing.
        """
        try:
            if len(cursor) > MAX_CURSOR:
                raise ValueError
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            digest, position = json.loads(raw)
        except (ValueError, TypeError, RecursionError):
            raise invalid_cursor() from None
        if not isinstance(position, dict) or digest != self._digest(position):
            raise invalid_cursor()
        return position

    def _digest(self, position: dict[str, Any]) -> str:
        bound = [self.kind, self.workspace_id, self.parent, self.filters, self.order, position]
        text = json.dumps(bound, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def invalid_cursor() -> InvalidRequest:
    return InvalidRequest("invalid page cursor", path="page")


def check_limit(limit: int | None, default: int, maximum: int) -> int:
    """The number of entries of a page; more than the maximum is refused, not cut."""
    if limit is None:
        return default
    if not 1 <= limit <= maximum:
        raise InvalidRequest(f"must be a whole number from 1 to {maximum}", path="limit")
    return limit
