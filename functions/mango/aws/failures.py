"""What botocore's exceptions mean for a transaction and for a read."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProxyConnectionError,
)

from mango.domain.transaction import Ambiguous, Refused, StoreUnavailable, TooLarge

Failure = BotoCoreError | ClientError

BUSY = frozenset(
    {
        "TransactionConflict",
        "TransactionConflictException",
        "ThrottlingError",
        "ThrottlingException",
        "Throttling",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
    }
)
"""Codes of requests that were certainly not carried out and may be made again."""

_NOT_SENT = (
    EndpointConnectionError,
    ConnectTimeoutError,
    ProxyConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
)


class Busy(Exception):
    """The request was not carried out, and another try may be."""


def commit_failure(error: Failure) -> Exception:
    """What to raise for a failed transaction: an error of the port, `Busy`, or `ValueError` for a wrong request."""
    if isinstance(error, _NOT_SENT):
        return StoreUnavailable(str(error))
    if not isinstance(error, ClientError):
        # A timeout, a closed connection, an answer that made no sense: the request may have arrived.
        return Ambiguous(str(error))
    code = error_code(error)
    if code == "TransactionCanceledException":
        return _cancelled(error)
    if code == "ConditionalCheckFailedException":
        return Refused((0,))
    if code in BUSY:
        return Busy(str(error))
    if status(error) >= 500 or code == "TransactionInProgressException":
        return Ambiguous(str(error))
    if code == "ValidationException":
        return _invalid(error_message(error))
    return StoreUnavailable(str(error))


def read_failure(error: Failure) -> Exception:
    """What to raise for a failed read: `Busy` if another try may help."""
    if not isinstance(error, ClientError):
        return Busy(str(error))
    code = error_code(error)
    if code in BUSY or status(error) >= 500:
        return Busy(str(error))
    if code == "ValidationException":
        return _invalid(error_message(error))
    return StoreUnavailable(str(error))


def error_code(error: ClientError) -> str:
    """The service's code of an error."""
    return str(error.response.get("Error", {}).get("Code", ""))


def error_message(error: ClientError) -> str:
    """The service's message of an error."""
    return str(error.response.get("Error", {}).get("Message", ""))


def status(error: ClientError) -> int:
    """The HTTP status of an error; 500 where there is none."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500))


def _cancelled(error: ClientError) -> Exception:
    response: Any = error.response
    reasons = [(reason.get("Code"), reason.get("Message") or "") for reason in response.get("CancellationReasons", [])]
    refused = tuple(index for index, (code, _) in enumerate(reasons) if code == "ConditionalCheckFailed")
    if refused:
        return Refused(refused)
    for code, message in reasons:
        if code == "ValidationError":
            return _invalid(message)
    if any(code in BUSY for code, _ in reasons):
        return Busy(str(error))
    return StoreUnavailable(str(error))


def _invalid(message: str) -> Exception:
    lowered = message.lower()
    if "size" in lowered and ("exceed" in lowered or "larger" in lowered):
        return TooLarge(message)
    return ValueError(message)
