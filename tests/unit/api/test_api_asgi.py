"""The API behind a real server: streaming both ways, limits while reading, clients that leave."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from mango.api import asgi
from mango.api.asgi import Message, Receive, Scope, Send
from mango.services import files as file_service
from tests.unit.api.desk import WORKSPACE_KEY, Desk
from tests.unit.api.served import served

AUTH = {"authorization": f"Bearer {WORKSPACE_KEY}"}
MIB = 1024 * 1024


@pytest.fixture
def client(desk: Desk) -> Iterator[httpx.Client]:
    with served(desk) as url, httpx.Client(base_url=url, headers=AUTH, timeout=20) as client:
        yield client


def test_requests_arrive_as_they_were_sent(client: httpx.Client, desk: Desk) -> None:
    made = client.post("/v1/agents", json={"name": "Ünïcode 🦊", "model": "m"})
    assert (made.status_code, made.headers["content-type"]) == (200, "application/json")
    assert made.headers["request-id"].startswith("req_")
    assert made.json()["name"] == "Ünïcode 🦊"
    page = client.get("/v1/agents?limit=1&created_at%5Bgte%5D=2020-01-01T00%3A00%3A00%2B00%3A00")
    assert page.json()["data"] == [made.json()]
    assert client.get("/v1/agents/a%2Fb").status_code == 404
    assert client.post(f"/v1/agents/{made.json()['id']}/archive", headers={"content-type": "application/json"}).json()[
        "archived_at"
    ]
    refused = client.get("/v1/agents", headers={"authorization": "Bearer nothing"})
    assert (refused.status_code, refused.json()["request_id"]) == (401, refused.headers["request-id"])
    assert client.get("/healthz").json() == {"status": "ok"}


def test_an_empty_poll_is_null(client: httpx.Client, desk: Desk) -> None:
    environment_id = desk.environment()["id"]
    answer = client.get(f"/v1/environments/{environment_id}/work/poll?block_ms=50")
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (200, "null", "application/json")


def test_a_large_body_is_refused_and_the_answer_arrives(client: httpx.Client) -> None:
    json = {"content-type": "application/json"}
    declared = client.post("/v1/agents", content=b"x" * (33 * MIB), headers=json)
    assert (declared.status_code, declared.json()["error"]["type"]) == (413, "invalid_request_error")
    chunked = client.post("/v1/agents", content=iter([b"x" * MIB] * 40), headers=json)
    assert chunked.status_code == 413
    assert client.get("/healthz").status_code == 200


def test_files_stream_through(client: httpx.Client, desk: Desk) -> None:
    data = os.urandom(3 * MIB) + b"\r\n\r\n--" * 1000
    made = client.post("/v1/files", files={"file": ("data.bin", data)}, data={"expires_in_seconds": "3600"}).json()
    assert made["checksum_sha256"] == hashlib.sha256(data).hexdigest()
    with client.stream("GET", f"/v1/files/{made['id']}/content") as answer:
        assert answer.headers["content-length"] == str(len(data))
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert b"".join(answer.iter_bytes()) == data


class Counting:
    """Blobs that keep nothing, so that whatever memory grows is not theirs."""

    def __init__(self, pause: float = 0) -> None:
        self.size = 0
        self.pause = pause

    def put_stream(self, key: str, chunks: Iterator[bytes], content_type: str) -> Any:
        from mango.ports import BlobInfo

        for chunk in chunks:
            self.size += len(chunk)
            time.sleep(self.pause)
        return BlobInfo(self.size, "0" * 64)

    def open(self, key: str) -> Iterator[bytes]:
        return iter([b"x" * MIB] * 100)


def test_uploads_and_downloads_take_bounded_memory(desk: Desk) -> None:
    from dataclasses import replace

    from mango.api.app import create_api

    blobs = Counting()
    desk.ctx = replace(desk.ctx, blobs=blobs)  # type: ignore[arg-type]
    desk.api = create_api(desk.ctx)
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    body = [head, *[b"y" * MIB] * 100, b"\r\n--b--\r\n"]
    with served(desk) as url:
        tracemalloc.start()
        headers = {**AUTH, "content-type": "multipart/form-data; boundary=b"}
        made = httpx.post(f"{url}/v1/files", content=iter(body), headers=headers, timeout=60)
        with httpx.stream("GET", f"{url}/v1/files/{made.json()['id']}/content", headers=AUTH, timeout=60) as answer:
            got = sum(len(chunk) for chunk in answer.iter_raw())
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (made.json()["size_bytes"], got) == (100 * MIB, 100 * MIB)
    assert peak < 30 * MIB


def test_a_file_over_the_limit_keeps_nothing(client: httpx.Client, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_service, "MAX_FILE_BYTES", MIB)
    assert client.post("/v1/files", files={"file": ("a", b"x" * MIB)}).status_code == 200
    refused = client.post("/v1/files", files={"file": ("a", b"x" * (MIB + 1))})
    assert refused.status_code == 413
    assert len(desk.ctx.blobs._blobs) == 1  # type: ignore[attr-defined]


def test_an_upload_without_credential_is_answered(client: httpx.Client) -> None:
    answer = client.post("/v1/files", files={"file": ("a", b"x" * 5 * MIB)}, headers={"authorization": "Bearer x"})
    assert answer.status_code == 401


def begun(url: str, path: str, token: str, size: int = MIB) -> socket.socket:
    """A connection on which a request with a large JSON body has arrived in part."""
    where = httpx.URL(url)
    assert where.port is not None
    connection = socket.create_connection((where.host, where.port), timeout=20)
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n"
    head += "content-type: application/json\r\ncontent-length: 30000000\r\n\r\n"
    connection.sendall(head.encode() + b" " * size)
    return connection


def first_line(connection: socket.socket) -> str:
    return connection.recv(1000).decode().partition("\r\n")[0]


def test_bodies_of_strangers_are_not_kept(desk: Desk) -> None:
    with served(desk) as url:
        tracemalloc.start()
        connections = [begun(url, "/v1/agents", "sk-mango-unknown", 2 * MIB) for _ in range(20)]
        time.sleep(0.5)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        for connection in connections:
            connection.close()
    assert peak < 20 * MIB


@pytest.mark.parametrize(
    ("path", "known", "status"),
    [
        ("/v1/agents", False, 401),
        ("/v1/agents/agent_x/archive", False, 401),
        ("/v1/sessions/sesn_$/events", False, 401),
        ("/v1/sessions/sesn_$/events", True, 404),
        ("/v1/nothing", False, 404),
    ],
)
def test_unfinished_requests_are_refused_in_the_order_of_all(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, path: str, known: bool, status: int
) -> None:
    monkeypatch.setattr(asgi, "DRAIN_SECONDS", 0.1)
    with served(desk) as url, begun(url, path, WORKSPACE_KEY if known else "sk-mango-unknown") as connection:
        assert first_line(connection).startswith(f"HTTP/1.1 {status} ")


def test_scoped_keys_are_refused_before_the_body(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "DRAIN_SECONDS", 0.1)
    key = desk.environment_key(desk.environment()["id"])
    with served(desk) as url, begun(url, "/v1/agents", key) as connection:
        assert first_line(connection).startswith("HTTP/1.1 403 ")


def test_large_bodies_of_friends_are_read_whole(client: httpx.Client) -> None:
    text = "x" * 99_000
    made = client.post("/v1/agents", json={"name": "a", "model": "m", "system": text})
    assert made.json()["system"] == text
    refused = client.post("/v1/agents", json={"name": "a", "model": "m", "system": text * 100})
    assert refused.json()["error"]["message"] == "system: must have at most 100000 characters, has 9900000"


def test_a_client_that_leaves_stores_nothing(client: httpx.Client, desk: Desk) -> None:
    host, port = client.base_url.host, client.base_url.port
    assert port is not None
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    with socket.create_connection((host, port)) as connection:
        connection.sendall(
            f"POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {WORKSPACE_KEY}\r\n"
            "content-type: multipart/form-data; boundary=b\r\ncontent-length: 1000000\r\n\r\n".encode()
            + head
            + b"some"
        )
        time.sleep(0.2)
    time.sleep(0.3)
    assert desk.ctx.blobs._blobs == {}  # type: ignore[attr-defined]
    assert client.get("/v1/files").json()["data"] == []


def test_waiting_polls_and_uploads_hold_nobody_up(client: httpx.Client, desk: Desk) -> None:
    environment_id = desk.environment()["id"]
    poll = f"/v1/environments/{environment_id}/work/poll?block_ms=999"
    release = threading.Event()

    def slowly() -> Iterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        release.wait(20)
        yield b"x\r\n--b--\r\n"

    form = {"content-type": "multipart/form-data; boundary=b"}
    with ThreadPoolExecutor(60) as pool:
        uploads = [pool.submit(client.post, "/v1/files", content=slowly(), headers=form) for _ in range(20)]
        polls = [pool.submit(client.get, poll) for _ in range(40)]
        time.sleep(0.3)
        assert client.get("/v1/agents").status_code == 200
        assert not any(one.done() for one in uploads)
        release.set()
        assert {one.result().text for one in polls} == {"null"}
        assert {one.result().status_code for one in uploads} == {200}


def test_streams_go_to_the_stream_application(desk: Desk) -> None:
    seen: list[str] = []

    async def stream_app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["path"])
        start: Message = {"type": "http.response.start", "status": 200, "headers": []}
        await send(start)
        await send({"type": "http.response.body", "body": b"streamed"})

    paths = ["/v1/sessions/sesn_x/events/stream", "/v1/sessions/sesn_x/threads/sthr_x/stream"]
    with served(desk, stream_app) as url:
        assert [httpx.get(url + path, headers=AUTH).text for path in paths] == ["streamed"] * 2
        assert httpx.post(url + paths[0], headers=AUTH).status_code == 404
    assert seen == paths
    with served(desk) as url:
        assert httpx.get(url + paths[0], headers=AUTH).status_code == 404
