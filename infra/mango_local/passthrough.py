"""Passing requests through to an API elsewhere, in pieces both ways."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import aclosing
from typing import Any

import httpx

from mango.api.errors import envelope, new_request_id
from mango.domain.errors import Unavailable
from mango.domain.ledger import dump_json
from mango_local.upstream import Upstream

log = logging.getLogger("mango.gateway")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

TIMES = httpx.Timeout(60.0, connect=5.0, pool=None)
"""An API Gateway answers within 29 s, whatever becomes of the request."""
LIMITS = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
ONE_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers that are for one connection only."""


class ClientGone(Exception):
    """The client left before its request was complete."""


class PassThrough:
    """An ASGI application that asks another for everything."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._client = httpx.AsyncClient(timeout=TIMES, limits=LIMITS, trust_env=not upstream.near)

    async def close(self) -> None:
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = self._request(scope, receive)
        try:
            response = await self._client.send(request, stream=True)
        except ClientGone:
            return
        except httpx.TransportError as error:
            log.warning("the API at %s does not answer: %s", self._upstream.origin, error or type(error).__name__)
            await _unavailable(send)
            return
        async with aclosing(response):
            await _respond(response, send)

    def _request(self, scope: Scope, receive: Receive) -> httpx.Request:
        """As it came: no header is added but the host, no byte of the path is changed."""
        headers = [(name, value) for name, value in _passed(scope["headers"]) if name != b"host"]
        path = self._upstream.prefix.encode() + _raw_path(scope)
        query = scope["query_string"]
        url = httpx.URL(self._upstream.origin).copy_with(raw_path=path + b"?" + query if query else path)
        return httpx.Request(
            scope["method"],
            url,
            headers=[(b"host", self._upstream.host.encode()), *headers],
            content=_body(receive) if _has_body(scope["headers"]) else None,
            extensions={"timeout": TIMES.as_dict()},
        )


def _raw_path(scope: Scope) -> bytes:
    raw = scope.get("raw_path") or scope["path"].encode()
    return bytes(raw).partition(b"?")[0]


def _passed(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Without those of this connection, and those that `connection` names."""
    lower = [(name.lower(), value) for name, value in headers]
    named = {one.strip().lower() for name, value in lower if name == b"connection" for one in value.split(b",")}
    return [(name, value) for name, value in lower if name not in ONE_HOP and name not in named]


def _has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in headers)


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        more = message.get("more_body", False)
        if message.get("body"):
            yield message["body"]


async def _respond(response: httpx.Response, send: Send) -> None:
    """An API that fails in between cuts the connection, so that no client takes a part for the whole."""
    headers = _passed(response.headers.raw)
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    async for piece in response.aiter_raw():
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _unavailable(send: Send) -> None:
    status, headers, body = envelope(Unavailable("the API does not answer; try again"), new_request_id())
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": dump_json(body).encode()})
