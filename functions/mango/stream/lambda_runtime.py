"""Lambda's runtime API, as a runtime that streams its answers speaks it.

Python's own Lambda runtime cannot stream, so the stream function brings this one (docs/streams.md). An answer is one
HTTP request whose chunked body is written while the function works:

    POST /2018-06-01/runtime/invocation/<id>/response      Lambda-Runtime-Function-Response-Mode: streaming
    {"statusCode": 200, "headers": {...}} NUL*8 body ...    then the end, with trailers if something went wrong
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VERSION = "/2018-06-01/runtime"
CONTENT_TYPE = "application/vnd.awslambda.http-integration-response"
ERROR_TYPE, ERROR_BODY = "Lambda-Runtime-Function-Error-Type", "Lambda-Runtime-Function-Error-Body"
SEPARATOR = b"\0" * 8
"""Between the prelude and the body."""
ACKNOWLEDGED_SECONDS = 5.0
"""How long Lambda may take to acknowledge a complete answer."""
ANSWER_SECONDS = 10.0
"""How long it may take to acknowledge an error report."""

Headers = Sequence[tuple[str, str]]


class RuntimeGone(Exception):
    """The runtime API does not answer as it should: the process has no more to do."""


class ConsumerGone(ConnectionError):
    """Nobody takes the rest of the answer."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """What the function is asked to do.

    Attributes:
        deadline: milliseconds since the epoch at which Lambda ends it.
        trace: X-Ray's trace header; empty without tracing.
    """

    request_id: str
    event: dict[str, Any]
    deadline: int
    trace: str = ""


class RuntimeApi:
    """The runtime API at `AWS_LAMBDA_RUNTIME_API`, `host:port`."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def next(self) -> Invocation:
        """Waits, as long as it takes, for the next invocation. Raises `RuntimeGone`."""
        return await asyncio.to_thread(self._next)

    async def report(self, request_id: str, error: BaseException) -> None:
        """Ends an invocation whose answer has not begun with an error."""
        await asyncio.to_thread(self._report, f"invocation/{request_id}/error", error)

    async def report_start(self, error: BaseException) -> None:
        """Tells that the process could not start."""
        await asyncio.to_thread(self._report, "init/error", error)

    async def answer(self, request_id: str, status: int, headers: Headers) -> StreamedAnswer:
        """Begins an answer. Raises `ConsumerGone`."""
        host, _, port = self._address.rpartition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except OSError as error:
            raise ConsumerGone(str(error)) from error
        answer = StreamedAnswer(reader, writer)
        await answer.begin(self._address, request_id, prelude(status, headers))
        return answer

    def _next(self) -> Invocation:
        connection = http.client.HTTPConnection(self._address)  # without a time limit: a frozen process waits here
        try:
            connection.request("GET", f"{VERSION}/invocation/next")
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise RuntimeGone(f"the runtime API answers {response.status}")
            return Invocation(
                request_id=str(response.headers["Lambda-Runtime-Aws-Request-Id"]),
                event=json.loads(body),
                deadline=int(response.headers["Lambda-Runtime-Deadline-Ms"] or 0),
                trace=response.headers["Lambda-Runtime-Trace-Id"] or "",
            )
        except (OSError, http.client.HTTPException) as error:
            raise RuntimeGone(str(error)) from error
        finally:
            connection.close()

    def _report(self, place: str, error: BaseException) -> None:
        headers = {"Content-Type": "application/json", ERROR_TYPE: error_type(error)}
        connection = http.client.HTTPConnection(self._address, timeout=ANSWER_SECONDS)
        try:
            connection.request("POST", f"{VERSION}/{place}", json.dumps(error_shown(error)), headers)
            connection.getresponse().read()
        except (OSError, http.client.HTTPException) as failure:
            raise RuntimeGone(str(failure)) from failure
        finally:
            connection.close()


class StreamedAnswer:
    """An answer that is being written. Everything but `close` raises `ConsumerGone`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._verdict = asyncio.create_task(self._reader.readline())
        """The runtime API's own answer; before the end of ours it means that the rest is not wanted."""

    async def begin(self, address: str, request_id: str, first: bytes) -> None:
        head = (
            f"POST {VERSION}/invocation/{request_id}/response HTTP/1.1\r\n"
            f"Host: {address}\r\n"
            f"Content-Type: {CONTENT_TYPE}\r\n"
            "Lambda-Runtime-Function-Response-Mode: streaming\r\n"
            "Transfer-Encoding: chunked\r\n"
            f"Trailer: {ERROR_TYPE}, {ERROR_BODY}\r\n"
            "\r\n"
        )
        await self._write(head.encode("ascii") + chunk(first))

    async def send(self, data: bytes) -> None:
        """Returns when there is room for more."""
        if data:  # an empty chunk would be the end
            await self._write(chunk(data))

    async def end(self) -> None:
        """Ends it well, and waits until that is acknowledged."""
        await self._end({})

    async def fail(self, error: BaseException) -> None:
        """Ends it with an error, which Lambda passes on behind what was sent."""
        shown = base64.b64encode(json.dumps(error_shown(error)).encode()).decode()
        await self._end({ERROR_TYPE: error_type(error), ERROR_BODY: shown})

    async def consumer_gone(self) -> None:
        """Returns when the runtime API has answered or left, which before the end means that nobody listens."""
        await asyncio.wait([self._verdict])

    def close(self) -> None:
        """Lets go of the connection, whatever state it is in."""
        if self._verdict.done() and not self._verdict.cancelled():
            self._verdict.exception()  # a connection that broke has been noticed by whoever wrote
        self._verdict.cancel()
        self._writer.transport.abort()  # closing would go on sending what nobody takes

    async def _end(self, trailers: Mapping[str, str]) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in trailers.items())
        await self._write(f"0\r\n{lines}\r\n".encode("ascii"))
        try:
            status = await asyncio.wait_for(self._verdict, ACKNOWLEDGED_SECONDS)
        except (TimeoutError, OSError) as error:
            raise ConsumerGone("the end of the answer was not acknowledged") from error
        if b" 202 " not in status:
            raise ConsumerGone(f"the answer was refused: {status[:80]!r}")

    async def _write(self, data: bytes) -> None:
        if self._verdict.done():
            raise ConsumerGone("the runtime API takes no more")
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ConsumerGone(str(error)) from error


def prelude(status: int, headers: Headers) -> bytes:
    """Status and headers as API Gateway reads them, and what ends them."""
    names = [name for name, _ in headers]
    once = {name: value for name, value in headers if names.count(name) == 1}
    often = {name: [value for other, value in headers if other == name] for name in names if names.count(name) > 1}
    shown: dict[str, Any] = {"statusCode": status, "headers": once}
    if often:
        shown["multiValueHeaders"] = often
    return json.dumps(shown, separators=(",", ":")).encode() + SEPARATOR


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def error_type(error: BaseException) -> str:
    """What Lambda shows as the kind of error."""
    return f"Function.{type(error).__name__}"


def error_shown(error: BaseException) -> dict[str, Any]:
    """The error without its stack, which stays in the log."""
    return {"errorType": type(error).__name__, "errorMessage": str(error)[:1000], "stackTrace": []}
