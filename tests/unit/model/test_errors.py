from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mango.model.errors import MESSAGE_LIMIT, retry_after_seconds, safe, status_error, transport_error, verdict

FAILED, RATE, OVER = "model_request_failed_error", "model_rate_limited_error", "model_overloaded_error"


@pytest.mark.parametrize(
    ("status", "body_type", "kind", "retryable"),
    [
        (400, "invalid_request_error", FAILED, False),
        (400, "overloaded_error", FAILED, False),
        (401, "authentication_error", FAILED, False),
        (402, "billing_error", "billing_error", False),
        (402, None, "billing_error", False),
        (403, "permission_error", FAILED, False),
        (404, "not_found_error", FAILED, False),
        (408, "invalid_request_error", FAILED, True),
        (409, None, FAILED, True),
        (413, "request_too_large", FAILED, False),
        (422, None, FAILED, False),
        (422, "billing_error", "billing_error", False),
        (418, "api_error", FAILED, False),
        (429, "invalid_request_error", RATE, True),
        (500, "api_error", FAILED, True),
        (500, "overloaded_error", OVER, True),
        (500, "invalid_request_error", FAILED, True),
        (502, None, FAILED, True),
        (503, "rate_limit_error", RATE, True),
        (504, "overloaded_error", FAILED, True),
        (529, None, OVER, True),
        (529, "api_error", OVER, True),
        (307, None, FAILED, False),
        (200, "overloaded_error", OVER, True),
        (200, "rate_limit_error", RATE, True),
        (200, "invalid_request_error", FAILED, False),
        (200, "billing_error", "billing_error", False),
        (200, "throttlingException", RATE, True),
        (200, "something_new", FAILED, True),
        (200, None, FAILED, True),
    ],
)
def test_verdicts(status: int, body_type: str | None, kind: str, retryable: bool) -> None:
    assert verdict(status, body_type) == (kind, retryable)


NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("0", 0),
        ("1.5", 1.5),
        ("3600", 60),
        ("inf", 60),
        ("-5", 0),
        ("Fri, 01 May 2026 12:00:20 GMT", 20),
        ("Fri, 01 May 2026 11:00:00 GMT", 0),
        ("Fri, 01 May 2026 15:00:00 GMT", 60),
        ("Fri, 01 May 2026 12:00:20 -0000", 20),
        ("Fri, 99 May 2026 12:00:20 GMT", None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


def test_retry_after_counts_only_where_a_retry_helps() -> None:
    assert status_error(429, {"retry-after": "3"}, None).retry_after == 3
    assert status_error(400, {"retry-after": "3"}, None).retry_after is None


@pytest.mark.parametrize(
    "body", [None, "text", b"bytes", [], {}, {"error": "no"}, {"error": {"type": 1, "message": []}}, {"message": 5}]
)
def test_odd_bodies(body: object) -> None:
    error = status_error(500, {}, body)
    assert error.message == "the model endpoint answered 500"
    assert (error.status, error.retryable) == (500, True)


def test_the_messages_of_aws() -> None:
    assert status_error(403, {}, {"message": "not yours"}).message == "the model endpoint answered 403: not yours"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-abcdefghijk",
        "Bearer abcdef123456",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "a" * 64,
        "our own secret!",
    ],
)
def test_secrets_are_taken_out(secret: str) -> None:
    text = safe(f"bad credential: {secret} was sent", ("our own secret!", ""))
    assert text == "bad credential: [redacted] was sent"


def test_urls_lose_their_secrets() -> None:
    text = safe("no route to http://me:pass@host/x?api_key=abc&n=1")
    assert text == "no route to http://[redacted]@host/x?[redacted]&n=1"


def test_messages_are_one_bounded_line() -> None:
    assert safe("a\n\tb\x00c\x1b[31m d") == "a b c [31m d"
    text = safe("word " * 1000)
    assert len(text) == MESSAGE_LIMIT
    assert text.endswith("…")
    assert len(safe("x y" * 1_000_000)) == MESSAGE_LIMIT


def test_ordinary_words_stay() -> None:
    text = "messages.3.content.0: tool_use ids must be unique, see https://docs.example.com/api (request req_011abc)"
    assert safe(text) == text


def test_transport_errors_name_their_cause() -> None:
    error = transport_error("the connection broke", OSError(104, "reset"), ("reset",))
    assert error.message == "the connection broke (ConnectionResetError: [Errno 104] [redacted])"
    assert (error.kind, error.retryable, error.status) == (FAILED, True, None)
