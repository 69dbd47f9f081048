"""Bedrock through the same code: its path, its signature and its binary frames, against a local server."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Sequence

import pytest

from mango.model.bedrock import BedrockModel
from mango.ports import Cancellation, Json, ModelAnswer, ModelError
from tests.support.messages_server import Failure, MessagesServer, Stream, answer_events
from tests.unit.model.conversation import ask, said, user

EVENTS = answer_events([{"type": "text", "text": "from bedrock"}])
FRAMES = "application/vnd.amazon.eventstream"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """A message of the AWS event stream: lengths, their checksum, headers, payload, checksum of it all."""
    encoded = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", len(encoded) + len(payload) + 16, len(encoded))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + encoded + payload
    return message + struct.pack("!I", zlib.crc32(message))


def chunk(event: Json) -> bytes:
    payload = json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode()}).encode()
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, payload)


def exception(kind: str) -> bytes:
    return frame({":exception-type": kind, ":message-type": "exception"}, json.dumps({"message": "no"}).encode())


def call(answer: Stream | Failure) -> tuple[ModelAnswer, MessagesServer]:
    with MessagesServer([answer]) as server:
        client = BedrockModel("eu-west-1", base_url=server.url)
        request = ask([user("hi")], model={"id": "anthropic.model-v1:0", "speed": "fast"})
        return client.request(request, Cancellation()), server


def failure(answer: Stream | Failure) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call(answer)
    return caught.value


def stream(frames: Sequence[bytes], cut_before: int | None = None) -> Stream:
    return Stream(frames, content_type=FRAMES, cut_before=cut_before)


def test_an_answer() -> None:
    answer, server = call(stream([chunk(event) for event in EVENTS]))
    assert said(answer) == "from bedrock"
    assert answer.usage.output_tokens == 11
    (recorded,) = server.requests
    assert recorded.path == "/model/anthropic.model-v1:0/invoke-with-response-stream"
    assert recorded.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/")
    assert "/eu-west-1/bedrock/" in recorded.headers["authorization"]
    assert recorded.body["anthropic_beta"] == ["fast-mode-2026-02-01"]
    assert "model" not in recorded.body


@pytest.mark.parametrize("index", range(len(EVENTS)))
def test_a_cut_anywhere_is_a_retryable_error(index: int) -> None:
    assert failure(stream([chunk(event) for event in EVENTS], cut_before=index)).retryable


@pytest.mark.parametrize(
    ("kind", "expected", "retryable"),
    [
        ("throttlingException", "model_rate_limited_error", True),
        ("serviceUnavailableException", "model_overloaded_error", True),
        ("modelStreamErrorException", "model_request_failed_error", True),
        ("validationException", "model_request_failed_error", False),
    ],
)
def test_exceptions_in_the_stream(kind: str, expected: str, retryable: bool) -> None:
    error = failure(stream([chunk(EVENTS[0]), exception(kind)]))
    assert (error.kind, error.retryable) == (expected, retryable)


def test_a_broken_frame() -> None:
    broken = bytearray(chunk(EVENTS[0]))
    broken[-1] ^= 1
    error = failure(stream([bytes(broken)]))
    assert (error.kind, error.retryable) == ("model_request_failed_error", True)


def test_an_error_status() -> None:
    error = failure(Failure(429, body=b'{"message": "slow down"}', headers={"x-amzn-errortype": "ThrottlingException"}))
    assert (error.kind, error.retryable) == ("model_rate_limited_error", True)
    assert error.message == "the model endpoint answered 429: slow down"


def test_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with MessagesServer() as server, pytest.raises(ModelError) as caught:
        # Another region than elsewhere: the library keeps what it found for one.
        BedrockModel("eu-west-3", base_url=server.url).request(ask([user("hi")]), Cancellation())
    assert caught.value.retryable
    assert "credentials" in caught.value.message


def test_a_model_id_that_fits_in_no_path() -> None:
    with MessagesServer() as server, pytest.raises(ModelError) as caught:
        client = BedrockModel("eu-west-1", base_url=server.url)
        client.request(ask([user("hi")], model={"id": ".."}), Cancellation())
    assert not caught.value.retryable
    assert server.requests == []
