"""The one hierarchy of errors that a request can end with, and the one table that maps each to its answer."""

from __future__ import annotations

from typing import Any, NamedTuple

MAX_SHOWN = 200
"""Characters of a path, or of another text of the request, that an answer repeats."""
MAX_MESSAGE = 1000
"""Characters of any message, whatever went into it."""


def shown(text: str, most: int = MAX_SHOWN) -> str:
    """What of a text may be repeated: answers and logs must not grow with what a client sends."""
    return text if len(text) <= most else text[: most - 1] + "…"


class MangoError(Exception):
    """Something went wrong on our side."""

    def __init__(self, message: str | None = None, *, details: dict[str, Any] | None = None) -> None:
        super().__init__(shown(message or (type(self).__doc__ or "").strip(), MAX_MESSAGE))
        self.details = details

    @property
    def message(self) -> str:
        return str(self.args[0])


class InvalidRequest(MangoError):
    """The request is not valid."""

    def __init__(
        self, message: str | None = None, *, path: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        """`path` is the field's place, `tools.0.configs.2.name`; it is put before the message, cut where it is long."""
        path = path and shown(path)
        super().__init__(f"{path}: {message}" if path and message else message, details=details)
        self.path = path


class Unauthenticated(MangoError):
    """invalid API key"""


class Forbidden(MangoError):
    """This credential may not do that."""


class NotFound(MangoError):
    """Not found."""


class Conflict(MangoError):
    """The resource is not in a state that allows this."""


class RetryableConflict(MangoError):
    """The resource is being changed by somebody else; try again."""


class PreconditionFailed(MangoError):
    """The precondition does not hold."""


class ContentTooLarge(MangoError):
    """The request body is too large."""


class Unsupported(InvalidRequest):
    """This is well-formed, but not supported by this deployment."""


class Unavailable(MangoError):
    """The store does not answer; try again."""


class ErrorAnswer(NamedTuple):
    """What an error becomes on the wire. `should_retry` is sent as `x-should-retry` when it is not None."""

    status: int
    type: str
    should_retry: bool | None = None


ANSWERS: dict[type[MangoError], ErrorAnswer] = {
    InvalidRequest: ErrorAnswer(400, "invalid_request_error"),
    Unauthenticated: ErrorAnswer(401, "authentication_error"),
    Forbidden: ErrorAnswer(403, "permission_error"),
    NotFound: ErrorAnswer(404, "not_found_error"),
    Conflict: ErrorAnswer(409, "conflict_error", should_retry=False),
    RetryableConflict: ErrorAnswer(409, "conflict_error", should_retry=True),
    PreconditionFailed: ErrorAnswer(412, "invalid_request_error"),
    ContentTooLarge: ErrorAnswer(413, "invalid_request_error"),
    Unsupported: ErrorAnswer(422, "invalid_request_error"),
    Unavailable: ErrorAnswer(503, "api_error", should_retry=True),
    MangoError: ErrorAnswer(500, "api_error"),
}
"""Every class has exactly one row; statuses and types by decisions 12, 13, 20, 21 and wire contract section 3."""


def answer_for(error: MangoError) -> ErrorAnswer:
    """The row of the error's own class."""
    return ANSWERS[type(error)]
