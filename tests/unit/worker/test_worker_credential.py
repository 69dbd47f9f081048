"""The credential's way from the supervisor to the item process, and what else an operator can get wrong."""

import base64
import json
import os
from pathlib import Path

import pytest

from mango_worker.credential import session_token
from mango_worker.durations import parse_duration
from mango_worker.errors import CredentialError, WorkerError
from mango_worker.frame import MAX_PAYLOAD, encode_frame, read_frame
from mango_worker.supervisor.identity import claim_identity
from mango_worker.supervisor.options import checked_url, checked_user, url_inside_container
from mango_worker.supervisor.work import parse_work


def secret(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


def read(raw: bytes, timeout: float = 5.0) -> bytes:
    reader, writer = os.pipe()
    try:
        os.write(writer, raw)
        os.close(writer)
        return read_frame(reader, timeout)
    finally:
        os.close(reader)


def test_a_frame_comes_back() -> None:
    assert read(encode_frame(b"payload") + b"more") == b"payload"
    assert read(encode_frame(b"x" * MAX_PAYLOAD)) == b"x" * MAX_PAYLOAD


@pytest.mark.parametrize("raw", [b"", b"\0\0", b"\0\0\0\0", b"\0\0\0\5four", b"\0\0\x40\1" + b"x" * 20_000])
def test_a_bad_frame_is_refused(raw: bytes) -> None:
    with pytest.raises(CredentialError):
        read(raw)


def test_a_frame_that_never_comes_is_not_waited_for() -> None:
    reader, writer = os.pipe()
    try:
        with pytest.raises(CredentialError, match="in time"):
            read_frame(reader, timeout=0.05)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("payload", [b"", b"x" * (MAX_PAYLOAD + 1)])
def test_a_payload_of_wrong_size_is_not_framed(payload: bytes) -> None:
    with pytest.raises(CredentialError):
        encode_frame(payload)


def test_the_token_is_found_with_or_without_padding() -> None:
    encoded = secret({"sessions_token": "sess_mango_abc", "other": 1})
    assert session_token(encoded) == session_token(encoded.rstrip("=")) == "sess_mango_abc"


@pytest.mark.parametrize(
    "bad", ["", "%%%", "é", secret([]), secret({}), secret({"sessions_token": 5}), secret({"sessions_token": "a\nb"})]
)
def test_anything_else_fails_closed_without_showing_it(bad: str) -> None:
    with pytest.raises(CredentialError) as caught:
        session_token(bad)
    assert not bad or bad not in str(caught.value)


def test_durations() -> None:
    assert [parse_duration(text) for text in ("60", "60s", "1m", "1m30s", "500ms", "1h")] == [60, 60, 60, 90, 0.5, 3600]
    for bad in ("", "0", "-1s", "1d", "s", "1m x"):
        with pytest.raises(WorkerError):
            parse_duration(bad)


def test_users_are_numeric() -> None:
    assert checked_user("1000:100") == "1000:100"
    assert checked_user("1000") == "1000:1000"
    for bad in ("root", "1000:", "a:b", "-1"):
        with pytest.raises(WorkerError):
            checked_user(bad)


def test_loopback_becomes_the_host_as_a_container_sees_it() -> None:
    assert url_inside_container("http://localhost:8080") == "http://host.docker.internal:8080"
    assert url_inside_container("http://127.0.0.1") == "http://host.docker.internal"
    assert url_inside_container("https://api.example.org/base") == "https://api.example.org/base"
    for bad in ("localhost:8080", "ftp://x", "http://user:word@x", "http://x?y"):
        with pytest.raises(WorkerError):
            checked_url(bad)


def test_ids_that_could_leave_their_directory_are_refused() -> None:
    good = {"id": "work_1", "data": {"type": "session", "id": "sesn_1"}, "secret": "s"}
    assert parse_work(good, "env_1").session_id == "sesn_1"
    assert "'s'" not in repr(parse_work(good, "env_1"))
    for bad in ("..", "../x", "a/b", "", ".hidden", 5, "x" * 200):
        with pytest.raises(WorkerError):
            parse_work({**good, "data": {"type": "session", "id": bad}}, "env_1")


def test_a_name_is_held_by_one_supervisor_and_free_after_it(tmp_path: Path) -> None:
    first, second = claim_identity(None, tmp_path), claim_identity(None, tmp_path)
    assert first.name != second.name
    with pytest.raises(WorkerError, match="another supervisor"):
        claim_identity(first.name, tmp_path)
    elsewhere = claim_identity(None, tmp_path / "another user")
    assert elsewhere.name not in (first.name, second.name)
    elsewhere.release()
    first.release()
    again = claim_identity(None, tmp_path)
    assert again.name == first.name
    again.release()
    second.release()
