"""The SSE application: plain ASGI, so that the same code runs below uvicorn and below Lambda response streaming."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mango.domain.errors import MangoError, NotFound, Unavailable
from mango.domain.ledger import dump_json
from mango.domain.principal import Credential
from mango.domain.transaction import StoreUnavailable
from mango.services.context import Context
from mango.stream.frames import KEEP_ALIVE, opening_frame
from mango.stream.hub import Hub
from mango.stream.opening import Authenticate, Opening, open_stream, target_of
from mango.stream.reading import read_page
from mango.stream.subscriber import End, Subscriber

log = logging.getLogger("mango.stream")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

Envelope = Callable[[BaseException, str], tuple[int, dict[str, str], dict[str, Any]]]

DROP = "mango.drop"
"""Extension of the scope: a function that drops the connection, with everything that the client has not read."""

KEEP_ALIVE_SECONDS = 15.0
REVALIDATE_SECONDS = {Credential.WORKSPACE: 5.0, Credential.ENVIRONMENT: 5.0, Credential.WORK: 1.0}
"""How often a stream's credential is looked at again. Work changes hands, keys are revoked rarely."""
STORE_PAUSE = 0.5
STALLED_SECONDS = 60.0
"""How long a send may wait for a client that reads slowly before it counts as one that does not read."""
LAST_WORDS_SECONDS = 1.0
"""How long the end of the response may."""


class StreamApp:
    """Serves `GET /v1/sessions/{id}/events/stream` and `GET /v1/sessions/{id}/threads/{thread}/stream`.

    Args:
        authenticate: verifies a request's credential.
        envelope: status, headers and body of the answer to an error, given that and the request's id.
        max_seconds: the server ends a stream at an event boundary after this long (before a platform would cut it);
            None lets it live as long as the client wants.
    """

    def __init__(
        self,
        ctx: Context,
        hub: Hub,
        *,
        authenticate: Authenticate,
        envelope: Envelope,
        max_seconds: float | None = None,
    ) -> None:
        self._ctx = ctx
        self._authenticate = authenticate
        self._envelope = envelope
        self._hub = hub
        self._max_seconds = max_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        request_id = f"req_{secrets.token_hex(12)}"
        try:
            opening = await self._open(scope, headers)
        except (MangoError, StoreUnavailable) as error:
            await _refuse(send, *self._envelope(error, request_id))
            return
        await _begin(send, request_id)
        await self._serve(_Connection(scope, receive, send), receive, opening, headers)

    async def _open(self, scope: Scope, headers: dict[str, str]) -> Opening:
        if self._hub.closed:
            raise Unavailable("the server is stopping; try again")
        target = target_of(scope["path"])
        if target is None:
            raise NotFound(f"{scope['path']!r} is not a stream")
        query = scope["query_string"].decode("latin-1")
        return await self._hub.tools.run(open_stream, self._ctx, self._authenticate, target, headers, query)

    async def _serve(
        self, connection: _Connection, receive: Receive, opening: Opening, headers: dict[str, str]
    ) -> None:
        """Sends until the client leaves or there is a reason to end."""
        subscriber = Subscriber(opening.start)
        self._hub.open(subscriber)
        pump = asyncio.create_task(self._pump(connection, opening, subscriber))
        enders = [pump, asyncio.create_task(_disconnected(receive)), asyncio.create_task(_cut(subscriber))]
        tasks = [*enders, *self._watchers(opening, headers, subscriber)]
        try:
            await asyncio.wait(enders, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(opening.session_id, opening.thread_id, subscriber)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if not pump.cancelled():
            pump.result()
        if subscriber.end is not None:
            log.debug("stream of %s ended: %s", opening.session_id, subscriber.end)
            await connection.end()

    def _watchers(self, opening: Opening, headers: dict[str, str], subscriber: Subscriber) -> list[asyncio.Task[None]]:
        watchers = [asyncio.create_task(self._revalidate(opening, headers, subscriber))]
        if self._max_seconds is not None:
            watchers.append(asyncio.create_task(_expire(self._max_seconds, subscriber)))
        return watchers

    async def _pump(self, connection: _Connection, opening: Opening, subscriber: Subscriber) -> None:
        try:
            await self._pump_on(connection, opening, subscriber)
        except Stalled:
            subscriber.abandon(End.OVERFLOW)

    async def _pump_on(self, connection: _Connection, opening: Opening, subscriber: Subscriber) -> None:
        await connection.send(opening_frame(opening.start))
        behind = opening.resumed
        while behind or not self._hub.attach(opening.session_id, opening.thread_id, subscriber):
            behind = await self._read_on(connection, opening, subscriber)
            if subscriber.end is not None:
                break
        while True:
            await _drain(connection, subscriber)
            if subscriber.end is not None:
                return
            if not await subscriber.wait(KEEP_ALIVE_SECONDS):
                await connection.send(KEEP_ALIVE)

    async def _read_on(self, connection: _Connection, opening: Opening, subscriber: Subscriber) -> bool:
        """Reads and sends a page on the subscriber's own account, at its own speed; False at the head."""
        tools = self._hub.tools
        try:
            page = await tools.run(
                read_page, tools.store, tools.blobs, opening.session_id, opening.thread_id, subscriber.done
            )
        except StoreUnavailable as error:
            log.warning("stream of %s: %s; again in %g s", opening.session_id, error, STORE_PAUSE)
            await asyncio.sleep(STORE_PAUSE)
            return True
        for commit in page:
            subscriber.push(commit.seq, commit.frames)
            await _drain(connection, subscriber)
        return bool(page)

    async def _revalidate(self, opening: Opening, headers: dict[str, str], subscriber: Subscriber) -> None:
        """Ends the stream when its credential no longer holds what it was opened with."""
        while True:
            await asyncio.sleep(REVALIDATE_SECONDS[opening.principal.kind])
            try:
                principal = await self._hub.tools.run(self._authenticate, self._ctx, headers)
            except (StoreUnavailable, Unavailable):
                continue
            except MangoError:
                principal = None
            if principal != opening.principal:
                subscriber.abandon(End.REVOKED)
                return


class Stalled(Exception):
    """The client does not read."""


class _Connection:
    """A response that has begun."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._drop: Callable[[], None] | None = (scope.get("extensions") or {}).get(DROP)
        self._receive = receive
        self._send = send

    async def send(self, data: bytes) -> None:
        """Returns when the transport has room again. Raises `Stalled`."""
        await self._within(STALLED_SECONDS, {"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """Ends the response; a client that does not read is not waited for, its connection is then dropped."""
        try:
            await self._within(LAST_WORDS_SECONDS, {"type": "http.response.body", "body": b"", "more_body": False})
        except Stalled:
            log.info("dropped the connection of a client that does not read")
            if self._drop is not None:
                self._drop()
                # A response that is left unfinished is none of our mistakes once the server knows that the client left.
                await _disconnected(self._receive)

    async def _within(self, seconds: float, message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._send(message)
        except TimeoutError:
            raise Stalled from None


async def _refuse(send: Send, status: int, headers: dict[str, str], body: dict[str, Any]) -> None:
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": dump_json(body).encode()})


async def _begin(send: Send, request_id: str) -> None:
    headers = [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
        (b"request-id", request_id.encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _drain(connection: _Connection, subscriber: Subscriber) -> None:
    while chunk := subscriber.take():
        await connection.send(chunk)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cut(subscriber: Subscriber) -> None:
    await subscriber.cut.wait()


async def _expire(seconds: float, subscriber: Subscriber) -> None:
    await asyncio.sleep(seconds)
    subscriber.finish(End.TIME)
