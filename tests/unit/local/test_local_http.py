"""Requests that are not HTTP, or not complete: what uvicorn does not do by itself."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mango_local import http_protocol
from mango_local.server import HttpServer

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class App:
    """Reads each request to its end, and answers the number of bytes it had."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for _ in ("startup", "shutdown"):
                await send({"type": (await receive())["type"] + ".complete"})
            return
        size, message = 0, dict[str, Any](more_body=True)
        while message.get("more_body"):
            message = await receive()
            size += len(message.get("body", b""))
        self.seen.append(message["type"])
        body = str(size).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def address(app: App) -> Iterator[tuple[str, int]]:
    ready = threading.Event()
    server = HttpServer(app, access_log=False, on_ready=ready.set)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.serve_on, args=([listening],), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield listening.getsockname()
    finally:
        server.stop()
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def connection(address: tuple[str, int]) -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=10) as connection:
        yield connection


def rest(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        "GET /ü HTTP/1.1\r\nhost: x\r\n\r\n".encode(),
        b"GET / HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 2_000_000,
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_gets_the_envelope(
    connection: socket.socket, app: App, caplog: pytest.LogCaptureFixture, request_bytes: bytes
) -> None:
    connection.sendall(request_bytes)
    head, _, body = rest(connection).partition(b"\r\n\r\n")
    answer = json.loads(body)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert f"request-id: {answer['request_id']}".encode() in head
    assert b"content-type: application/json" in head
    assert (answer["type"], answer["error"]["type"]) == ("error", "invalid_request_error")
    assert "HTTP" in answer["error"]["message"]
    assert "http.request" not in app.seen
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_nonsense_behind_a_request_does_not_spoil_its_answer(connection: socket.socket) -> None:
    connection.sendall(GET + b"nonsense\r\n\r\n")
    answers = rest(connection)
    assert answers.startswith(b"HTTP/1.1 200 ")
    assert answers.count(b"HTTP/1.1 400 ") == 1


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEADER_SECONDS", 0.5)


def test_half_a_request_ends(hasty: None, address: tuple[str, int]) -> None:
    for begun in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\n"):
        started = time.monotonic()
        with socket.create_connection(address, timeout=10) as connection:
            connection.sendall(begun)
            assert rest(connection) == b""
        assert 0.3 < time.monotonic() - started < 5


def test_headers_that_drip_do_not_gain_time(hasty: None, connection: socket.socket) -> None:
    started = time.monotonic()
    with pytest.raises(OSError):
        for byte in GET[:-1] * 10:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)
    assert time.monotonic() - started < 5


def test_only_headers_are_hurried(hasty: None, connection: socket.socket) -> None:
    for _ in range(2):
        connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\na")
        time.sleep(0.8)
        connection.sendall(b"b")
        answer = b""
        while not answer.endswith(b"\r\n\r\n2"):
            answer += connection.recv(1000)
        assert answer.startswith(b"HTTP/1.1 200 ")
        time.sleep(0.8)  # idle between two requests
    connection.sendall(b"GET")
    assert rest(connection) == b""
