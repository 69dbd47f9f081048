"""What a failed model request means: which public error it is, and whether trying again may help."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from mango.ports import ModelError

MESSAGE_LIMIT = 500
RETRY_AFTER_LIMIT = 60.0

FAILED = "model_request_failed_error"
RATE_LIMITED = "model_rate_limited_error"
OVERLOADED = "model_overloaded_error"
BILLING = "billing_error"


class Verdict(NamedTuple):
    """The public error's type, and whether the same request may succeed later."""

    kind: str
    retryable: bool


_BY_STATUS = {
    400: Verdict(FAILED, False),
    401: Verdict(FAILED, False),
    402: Verdict(BILLING, False),
    403: Verdict(FAILED, False),
    404: Verdict(FAILED, False),
    408: Verdict(FAILED, True),
    409: Verdict(FAILED, True),
    413: Verdict(FAILED, False),
    429: Verdict(RATE_LIMITED, True),
    504: Verdict(FAILED, True),
    529: Verdict(OVERLOADED, True),
}

# Types in the body: first those of the Messages protocol, then those that Bedrock puts into a stream.
_BY_TYPE = {
    "rate_limit_error": Verdict(RATE_LIMITED, True),
    "overloaded_error": Verdict(OVERLOADED, True),
    "api_error": Verdict(FAILED, True),
    "timeout_error": Verdict(FAILED, True),
    "invalid_request_error": Verdict(FAILED, False),
    "authentication_error": Verdict(FAILED, False),
    "permission_error": Verdict(FAILED, False),
    "not_found_error": Verdict(FAILED, False),
    "request_too_large": Verdict(FAILED, False),
    "billing_error": Verdict(BILLING, False),
    "throttlingException": Verdict(RATE_LIMITED, True),
    "serviceUnavailableException": Verdict(OVERLOADED, True),
    "validationException": Verdict(FAILED, False),
}


def verdict(status: int, body_type: str | None) -> Verdict:
    """The status decides where it is in the table, and always whether to try again.

    A status of success means that the error came inside the stream, where only the body's type can tell.
    """
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    by_type = _BY_TYPE.get(body_type or "")
    if 200 <= status < 300:
        return by_type or Verdict(FAILED, True)
    retryable = status >= 500
    if by_type is not None and by_type.retryable == retryable:
        return by_type
    return Verdict(FAILED, retryable)


def status_error(status: int, headers: Mapping[str, str], body: Any, secrets: tuple[str, ...] = ()) -> ModelError:
    """The error for an answer with this status, or, when that is one of success, for an error inside its stream."""
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    body_type, text = error.get("type"), error.get("message")
    if not text and isinstance(body, dict):
        text = body.get("message")
    kind, retryable = verdict(status, body_type if isinstance(body_type, str) else None)
    where = "broke off" if 200 <= status < 300 else f"answered {status}"
    said = ": ".join(part for part in (body_type, text) if isinstance(part, str) and part)
    message = f"the model endpoint {where}" + (f": {said}" if said else "")
    return ModelError(
        kind,
        safe(message, secrets),
        retryable=retryable,
        retry_after=retry_after_seconds(headers.get("retry-after")) if retryable else None,
        status=status,
    )


def transport_error(what: str, error: BaseException | None = None, secrets: tuple[str, ...] = ()) -> ModelError:
    """The error for a request that got no complete answer; may succeed later."""
    cause = f" ({type(error).__name__}: {error})" if error is not None else ""
    return ModelError(FAILED, safe(what + cause, secrets), retryable=True)


def permanent_error(what: str) -> ModelError:
    """The error for a request that cannot be made as it is."""
    return ModelError(FAILED, safe(what), retryable=False)


def retry_after_seconds(value: str | None, now: datetime | None = None) -> float | None:
    """What `Retry-After` asks for, at most a minute; None when it says nothing usable."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        seconds = (when - (now or datetime.now(UTC))).total_seconds()
    if math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), RETRY_AFTER_LIMIT)


_SECRETS = re.compile(
    r"""(?ix)
    \b sk-[\w-]{6,}                                     # keys of model providers, and ours
    | \b (?:bearer|basic) \s+ [\w.~+/=-]{6,}            # credentials as headers carry them
    | \b (?:AKIA|ASIA|ABIA) [0-9A-Z]{12,}               # AWS access key ids
    | \b eyJ[\w-]{8,} (?:\.[\w-]+)*                     # JSON web tokens
    | (?<=://) [^/\s@]+ (?=@)                           # user and password in a URL
    | (?<=[?&]) [\w-]*(?:key|token|secret|signature|password)[\w-]* = [^&\s]+
    | \b [\w+/=-]{64,}                                  # anything else that is long and no word
    """
)


def safe(message: str, secrets: tuple[str, ...] = ()) -> str:
    """The message on one line, bounded, without these secrets and without what looks like one."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        message = message.replace(secret, "[redacted]")
    # Far more than what is kept, so that no secret is cut in half before it is found, yet bounded work.
    message = _SECRETS.sub("[redacted]", message[: 20 * MESSAGE_LIMIT])
    message = " ".join("".join(c if c.isprintable() else " " for c in message).split())
    return message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…"
