"""An ASGI application below Lambda's response streaming: API Gateway's event in, a streamed answer out."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote, unquote_plus, urlencode

from mango.stream.lambda_runtime import ConsumerGone, Headers, Invocation, RuntimeApi, StreamedAnswer

log = logging.getLogger("mango.stream")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

AppFor = Callable[[Invocation, float], Application]
"""The application for one invocation, given the seconds that Lambda leaves it."""


class NotHttp(ValueError):
    """The event does not come from API Gateway."""


class LambdaRuntime:
    """Takes invocations one after the other, as Lambda gives them to a process."""

    def __init__(self, api: RuntimeApi, app_for: AppFor) -> None:
        self._api = api
        self._app_for = app_for

    async def run(self) -> None:
        """Serves until the process ends. Raises `RuntimeGone`."""
        while True:
            await self.serve(await self._api.next())

    async def serve(self, invocation: Invocation) -> None:
        """Answers one invocation; its failure is told to Lambda and ends nothing else."""
        _trace(invocation.trace)
        exchange = _Exchange(self._api, invocation.request_id)
        try:
            scope = scope_of(invocation.event)
            left = invocation.deadline / 1000 - time.time()
            await self._app_for(invocation, left)(scope, exchange.receive, exchange.send)
            await exchange.end()
        except ConsumerGone as gone:
            log.info("the client of %s left: %s", invocation.request_id, gone)
        except Exception as error:  # the outermost loop of this process
            log.error("invocation %s failed", invocation.request_id, exc_info=error)
            await exchange.fail(error)
        finally:
            exchange.close()


class _Exchange:
    """The two halves of an ASGI connection."""

    def __init__(self, api: RuntimeApi, request_id: str) -> None:
        self._api = api
        self._request_id = request_id
        self._answer: StreamedAnswer | None = None
        self._begun = asyncio.Event()
        self._asked = False
        self._ended = False

    async def receive(self) -> Message:
        """The request, which has no body; then, when it comes to that, the client's leaving."""
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._begun.wait()
        assert self._answer is not None
        await self._answer.consumer_gone()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Raises `ConsumerGone`."""
        if message["type"] == "http.response.start":
            self._answer = await self._api.answer(self._request_id, message["status"], _headers(message))
            self._begun.set()
            return
        assert self._answer is not None, "a body before its start"
        await self._answer.send(message.get("body", b""))
        if not message.get("more_body", False):
            await self.end()

    async def end(self) -> None:
        """Ends the answer, once. An application that ends without one has failed. Raises `ConsumerGone`."""
        if self._answer is None:
            raise RuntimeError("the application gave no answer")
        if not self._ended:
            self._ended = True
            await self._answer.end()

    async def fail(self, error: Exception) -> None:
        """Tells Lambda, by an error report or behind what was sent already."""
        if self._answer is None:
            await self._api.report(self._request_id, error)
        elif not self._ended:
            self._ended = True
            try:
                await self._answer.fail(error)
            except ConsumerGone:
                return  # nobody is there to be told

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()


def scope_of(event: Mapping[str, Any]) -> Scope:
    """The ASGI scope of an API Gateway REST proxy event.

    Raises:
        NotHttp: it is none.
    """
    method, path = event.get("httpMethod"), event.get("path")
    if not isinstance(method, str) or not isinstance(path, str):
        raise NotHttp("the event has no httpMethod and path")
    pairs = [
        (unquote_plus(name) if "%" in name else name, str(value))
        for name, values in _multi(event, "multiValueQueryStringParameters", "queryStringParameters").items()
        for value in values
    ]
    headers = [
        (name.lower().encode("latin-1"), str(value).encode("latin-1", "replace"))
        for name, values in _multi(event, "multiValueHeaders", "headers").items()
        for value in values
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "https",
        "method": method.upper(),
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": urlencode(pairs).encode("ascii"),
        "headers": headers,
        "client": None,
        "server": None,
    }


def _multi(event: Mapping[str, Any], many: str, single: str) -> dict[str, list[Any]]:
    given = event.get(many) or {name: [value] for name, value in (event.get(single) or {}).items()}
    return {name: values for name, values in given.items() if values}


def _headers(message: Message) -> Headers:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in message["headers"]]


def _trace(header: str) -> None:
    """Where the X-Ray SDK looks for the trace that its segments belong to."""
    if header:
        os.environ["_X_AMZN_TRACE_ID"] = header
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)
