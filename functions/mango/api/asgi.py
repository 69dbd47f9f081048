"""The API below an ASGI server, for the embedded profile.

Requests run in threads of their own pools, because use cases block: a poll waits for a second, an upload for its
client. One kind must not keep the others waiting.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from mango.api.app import Api, error_response
from mango.api.errors import new_request_id
from mango.api.json_body import MAX_BODY, too_large
from mango.api.messages import Request, Response
from mango.domain.errors import InvalidRequest, MangoError
from mango.services.context import Context

log = logging.getLogger("mango.api")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

THREADS = 64
"""Requests at once; as many polls beside them."""
TRANSFERS = 32
"""Uploads and downloads at once, and checks of what was uploaded."""
LITTLE = 64 * 1024
"""What is kept of a body before it is known who sends it."""
DRAIN_BYTES = 64 * 1024 * 1024
DRAIN_SECONDS = 10.0
"""How much of a refused body is still read, and how long, so that its sender gets to see the answer."""
LOOK_SECONDS = 1.0
"""How often a thread that waits for an upload looks whether there is still a server."""

_STREAM = re.compile(r"/v1/sessions/[^/]+/(events/stream|threads/[^/]+/stream)/?")
_POLL = re.compile(r"/v1/environments/[^/]+/work/poll/?")
_UPLOAD = re.compile(r"POST /v1/files/?|PUT /v1/files/uploads/[^/]+/parts/[^/]+/?")
_TRANSFER = re.compile(_UPLOAD.pattern + r"|GET /v1/files/[^/]+/content/?|POST /v1/files/uploads/[^/]+/complete/?")


class ClientGone(Exception):
    """The client left before its request was complete."""


class _Refusal(Exception):
    """The request is answered without its body."""

    def __init__(self, response: Response) -> None:
        self.response = response


class AsgiApi:
    """An ASGI application around an `Api`, with the stream application beside it."""

    def __init__(self, api: Api, stream_app: Application | None) -> None:
        self._api = api
        self._stream_app = stream_app
        self._requests = ThreadPoolExecutor(THREADS, "mango-api")
        self._polls = ThreadPoolExecutor(THREADS, "mango-poll")
        self._transfers = ThreadPoolExecutor(TRANSFERS, "mango-transfer")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] != "http":
            raise ValueError(f"cannot serve {scope['type']!r}")
        elif self._stream_app is not None and scope["method"] == "GET" and _STREAM.fullmatch(scope["path"]):
            await self._stream_app(scope, receive, send)
        else:
            await self._http(scope, _Body(receive, asyncio.get_running_loop()), send)

    def close(self) -> None:
        """Lets go of the threads; requests under way end by themselves."""
        for pool in (self._requests, self._polls, self._transfers):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, body: _Body, send: Send) -> None:
        path, method = _path(scope), str(scope["method"]).upper()
        pool = self._pool(method, path)
        upload = _UPLOAD.fullmatch(f"{method} {path}") is not None
        try:
            request = _request(scope, method, path, body.chunks() if upload else None)
            if not upload:
                admit = partial(self._admit, request, pool)
                request = replace(request, body=await body.whole(_declared(scope), admit))
        except ClientGone:
            return
        except _Refusal as refusal:
            response = refusal.response
        except MangoError as error:
            response = error_response(error, new_request_id())
        else:
            response = await _in(pool, self._api.handle, request)
        if response.status >= 400:
            await body.drain()
        await _respond(response, body, send, pool)

    async def _admit(self, request: Request, pool: ThreadPoolExecutor) -> None:
        refusal = await _in(pool, self._api.refusal, request)
        if refusal is not None:
            raise _Refusal(refusal)

    def _pool(self, method: str, path: str) -> ThreadPoolExecutor:
        if _POLL.fullmatch(path):
            return self._polls
        return self._transfers if _TRANSFER.fullmatch(f"{method} {path}") else self._requests


class _Body:
    """A request's body, taken from the server as it is needed."""

    def __init__(self, receive: Receive, loop: asyncio.AbstractEventLoop) -> None:
        self._receive = receive
        self._loop = loop
        self._complete = False

    async def next(self) -> bytes:
        """The next piece; empty at the end.

        Raises:
            ClientGone: there is no more to come and the end was not reached.
        """
        while not self._complete:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._complete = True
                raise ClientGone
            self._complete = not message.get("more_body", False)
            if message.get("body"):
                return bytes(message["body"])
        return b""

    async def whole(self, declared: int | None, admit: Callable[[], Awaitable[None]]) -> bytes:
        """All of it; more than a JSON body may have is refused as soon as it shows.

        `admit` raises if the request is refused anyway. It is asked before much is kept, and not for what arrives at
        once: whoever answers that checks the same.
        """
        if declared is not None and declared > MAX_BODY:
            raise too_large()
        pieces: list[bytes] = []
        size, admitted = 0, False
        while piece := await self.next():
            size += len(piece)
            if size > MAX_BODY:
                raise too_large()
            pieces.append(piece)
            if size > LITTLE and not (admitted or self._complete):
                await admit()
                admitted = True
        return b"".join(pieces)

    def chunks(self) -> Iterator[bytes]:
        """The pieces, for a thread of a pool; the server's flow control reaches through to the client."""
        while piece := self._wait(asyncio.run_coroutine_threadsafe(self.next(), self._loop)):
            yield piece

    def _wait(self, piece: Future[bytes]) -> bytes:
        """Does not outlive the event loop, which would keep the process from ending."""
        while True:
            try:
                return piece.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                if self._loop.is_closed():
                    raise InvalidRequest("ends early: the server is stopping", path="body") from None
            except ClientGone:
                raise InvalidRequest("ends before it is complete", path="body") from None

    async def drain(self) -> None:
        """Reads on a little, so that closing the connection does not take the answer with it."""
        left = DRAIN_BYTES
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while left > 0 and (piece := await self.next()):
                    left -= len(piece)
        except (TimeoutError, ClientGone):
            return

    async def gone(self) -> None:
        """Returns when the client has left; only once the body is complete."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _path(scope: Scope) -> str:
    raw = scope.get("raw_path")
    if raw:
        return bytes(raw).partition(b"?")[0].decode("latin-1")
    return str(scope["path"])


def _declared(scope: Scope) -> int | None:
    """What `content-length` announces."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return None


def _request(scope: Scope, method: str, path: str, chunks: Iterator[bytes] | None) -> Request:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    values: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise InvalidRequest("too many query parameters") from None
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return Request(method, path, values, headers, chunks=chunks)


async def _in(pool: ThreadPoolExecutor, function: Callable[..., Any], *args: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, function, *args)


async def refuse(error: MangoError, receive: Receive, send: Send) -> None:
    """Answers a request with an error's envelope, for applications that stand before this one."""
    response = error_response(error, new_request_id())
    await _Body(receive, asyncio.get_running_loop()).drain()
    await _start(response, send)
    await send({"type": "http.response.body", "body": response.body})


async def _respond(response: Response, body: _Body, send: Send, pool: ThreadPoolExecutor) -> None:
    await _start(response, send)
    if response.chunks is not None:
        await _send_chunks(response.chunks, body, send, pool)
    await send({"type": "http.response.body", "body": response.body})


async def _start(response: Response, send: Send) -> None:
    headers = dict(response.headers)
    if response.chunks is None:
        headers.setdefault("content-length", str(len(response.body)))
    await send(
        {
            "type": "http.response.start",
            "status": response.status,
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        }
    )


async def _send_chunks(chunks: Iterator[bytes], body: _Body, send: Send, pool: ThreadPoolExecutor) -> None:
    """Sends until the chunks end or the client leaves; a store that fails in between cuts the connection."""
    gone = asyncio.create_task(body.gone())
    try:
        while not gone.done():
            chunk: bytes | None = await _in(pool, next, chunks, None)
            if chunk is None:
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        gone.cancel()
        await _in(pool, _close, chunks)


def _close(chunks: Iterator[bytes]) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()


def create_asgi(context: Context, api: Api, stream_app: Application | None = None) -> AsgiApi:
    """The application that a server of the embedded profile runs.

    `stream_app` serves the paths of event streams; without one they are unknown routes.
    """
    return AsgiApi(api, stream_app)
