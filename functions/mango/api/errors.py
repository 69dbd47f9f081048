"""Every error that leaves this server: one envelope (wire contract, section 3.1)."""

from __future__ import annotations

import secrets
from typing import Any

from mango.domain.errors import ContentTooLarge, MangoError, Unavailable, answer_for
from mango.domain.transaction import Ambiguous, StoreUnavailable, TooLarge

Json = dict[str, Any]

EXPECTED = (MangoError, StoreUnavailable, Ambiguous, TooLarge)
"""What services raise; anything else is a mistake of ours."""


def new_request_id() -> str:
    """Not from `Ids`: it is no part of the product's state, and must not disturb a seeded sequence."""
    return f"req_{secrets.token_hex(12)}"


def as_mango_error(error: BaseException) -> MangoError:
    """The error of the product that an exception amounts to; what is unexpected keeps its text to itself."""
    if isinstance(error, MangoError):
        return error
    if isinstance(error, StoreUnavailable):
        return Unavailable("the store does not answer; try again")
    if isinstance(error, Ambiguous):
        return Unavailable("the store's answer was lost; whether the change was made is unknown")
    if isinstance(error, TooLarge):
        return ContentTooLarge("the request is larger than what can be stored")
    return MangoError("something went wrong on our side; the server's log has the details under this request id")


def envelope(error: BaseException, request_id: str) -> tuple[int, dict[str, str], Json]:
    """Status, headers (with lower-case names) and body of the answer to a failed request."""
    known = as_mango_error(error)
    answer = answer_for(known)
    shown: Json = {"type": answer.type, "message": known.message}
    if known.details is not None:
        shown["details"] = known.details
    headers = {"content-type": "application/json", "request-id": request_id}
    if answer.should_retry is not None:
        headers["x-should-retry"] = "true" if answer.should_retry else "false"
    return answer.status, headers, {"type": "error", "error": shown, "request_id": request_id}
