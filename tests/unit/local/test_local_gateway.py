"""The gateway's passing through, over real connections: to an API that shows what it was asked."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import httpx
import pytest
import uvicorn

from mango_local.gateway import Gateway
from mango_local.passthrough import Message, PassThrough, Receive, Scope, Send
from mango_local.upstream import Upstream

Json = dict[str, Any]


class Api:
    """Answers with what it was asked; some paths misbehave."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.release = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].endswith("/gzip"):
            headers = [(b"content-encoding", b"gzip"), (b"x-twice", b"1"), (b"x-twice", b"2")]
            await _answer(send, 201, headers, gzip.compress(b"packed"))
        elif scope["path"].endswith("/cut"):
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]})
            await send({"type": "http.response.body", "body": b"part", "more_body": True})
            raise ConnectionError
        elif scope["path"].endswith("/slow"):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"first\n", "more_body": True})
            await asyncio.to_thread(self.release.wait, 10)
            await send({"type": "http.response.body", "body": b"second\n"})
        else:
            await self._show(scope, receive, send)

    async def _show(self, scope: Scope, receive: Receive, send: Send) -> None:
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            self.pieces.append(message.get("body", b""))
        shown = {
            "method": scope["method"],
            "path": scope["raw_path"].decode(),
            "query": scope["query_string"].decode(),
            "headers": [[name.decode(), value.decode()] for name, value in scope["headers"]],
            "body": b"".join(self.pieces).decode(),
        }
        await _answer(send, 200, [(b"content-type", b"application/json")], json.dumps(shown).encode())


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def served(app: Any, lifespan: Literal["on", "off"] = "off") -> Iterator[int]:
    """The port of a real server."""
    config = uvicorn.Config(app, port=0, log_config=None, lifespan=lifespan, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=asyncio.run, args=(server.serve(),), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.01)
    try:
        yield int(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


@contextmanager
def gateway(api: Any, path: str = "/local") -> Iterator[httpx.Client]:
    """A client of the gateway to this API, which is known by a name that nobody resolves."""
    with served(api) as port, in_front(f"http://abc.execute-api.localhost:{port}{path}") as client:
        yield client


@contextmanager
def in_front(url: str) -> Iterator[httpx.Client]:
    """A client of the gateway to this address."""
    app = Gateway(no_streams, PassThrough(Upstream.read(url)))
    with served(app, "on") as own, httpx.Client(base_url=f"http://127.0.0.1:{own}", trust_env=False) as client:
        yield client


async def no_streams(scope: Scope, receive: Receive, send: Send) -> None:
    await _answer(send, 418, [], b"a stream")


@pytest.fixture
def api() -> Api:
    return Api()


def test_a_request_arrives_as_it_was_sent(api: Api) -> None:
    with gateway(api) as client:
        sent = [("x-a", "1"), ("x-a", "2"), ("authorization", "Bearer k"), ("connection", "x-mine"), ("x-mine", "no")]
        shown = client.request(
            "PATCH", "/v1/files/a%2Fb%20c?x%5B%5D=1&x%5B%5D=%C3%A9", headers=sent, content=b"{}"
        ).json()
    assert (shown["method"], shown["path"]) == ("PATCH", "/local/v1/files/a%2Fb%20c")
    assert (shown["query"], shown["body"]) == ("x%5B%5D=1&x%5B%5D=%C3%A9", "{}")
    headers = shown["headers"]
    assert [value for name, value in headers if name == "x-a"] == ["1", "2"]
    (host,) = [value for name, value in headers if name == "host"]
    assert host.startswith("abc.execute-api.localhost:")
    assert not [name for name, _ in headers if name in ("connection", "x-mine", "transfer-encoding")]


def test_a_request_without_a_body_stays_one(api: Api) -> None:
    with gateway(api, "") as client:
        shown = client.get("/v1/agents").json()
    assert shown["path"] == "/v1/agents"
    assert not [name for name, _ in shown["headers"] if name in ("content-length", "transfer-encoding")]


def test_a_body_of_unknown_length_passes_in_pieces(api: Api) -> None:
    with gateway(api) as client:
        shown = client.post("/v1/files", content=iter([b"a" * 100_000, b"b" * 100_000])).json()
    assert shown["body"] == "a" * 100_000 + "b" * 100_000
    assert len(api.pieces) > 1


def test_streams_are_served_here_and_nothing_else_is(api: Api) -> None:
    with gateway(api) as client:
        for path in ("/v1/sessions/s/events/stream", "/v1/sessions/s/threads/t/stream"):
            assert client.get(path).status_code == 418
            assert client.post(path).json()["path"] == f"/local{path}"
        assert client.get("/v1/sessions/s/events").json()["path"] == "/local/v1/sessions/s/events"


def test_an_answer_comes_back_as_it_was_given(api: Api) -> None:
    with gateway(api) as client:
        answer = client.get("/gzip")
    assert (answer.status_code, answer.content) == (201, b"packed")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers.get_list("x-twice") == ["1", "2"]


def test_an_answer_passes_in_pieces(api: Api) -> None:
    with gateway(api) as client, client.stream("GET", "/slow") as answer:
        pieces = answer.iter_lines()
        assert next(pieces) == "first"
        api.release.set()
        assert next(pieces) == "second"


def test_an_answer_that_is_cut_stays_cut(api: Api) -> None:
    with gateway(api) as client, pytest.raises(httpx.RemoteProtocolError):
        client.get("/cut")


def test_an_api_that_does_not_answer_is_unavailable() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with in_front(f"http://127.0.0.1:{nobody.getsockname()[1]}") as client:
            answer = client.get("/v1/agents")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (503, "true")
    assert answer.json()["error"]["type"] == "api_error"
    assert answer.json()["request_id"] == answer.headers["request-id"]


def test_a_client_that_leaves_in_the_middle_of_its_request_ends_it() -> None:
    async def story() -> list[Message]:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            through = PassThrough(Upstream.read(f"http://127.0.0.1:{listening.getsockname()[1]}"))
            scope = {
                "type": "http",
                "method": "POST",
                "path": "/v1/files",
                "query_string": b"",
                "headers": [(b"content-length", b"5")],
            }
            await through(scope, receive, send)
            await through.close()
        return sent

    assert asyncio.run(story()) == []
