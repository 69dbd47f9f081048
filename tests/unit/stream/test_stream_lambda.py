"""Our part of Lambda's streaming protocol, byte by byte: no emulator runs it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mango.stream.lambda_runtime import Invocation, RuntimeApi, RuntimeGone
from mango.stream.lambda_streaming import Application, LambdaRuntime, Receive, Scope, Send, scope_of
from tests.unit.stream.runtime_api import FakeRuntimeApi, Posted
from tests.unit.stream.watching import SESSION, World

Json = dict[str, Any]

PATH = f"/v1/sessions/{SESSION}/events/stream"
EVENT: Json = {
    "httpMethod": "GET",
    "path": PATH,
    "multiValueHeaders": {"Authorization": ["workspace"], "Accept": ["text/event-stream"]},
    "multiValueQueryStringParameters": None,
}
START = {"type": "http.response.start", "status": 200, "headers": [(b"Content-Type", b"text/event-stream")]}


def body(data: bytes, more: bool = True) -> Json:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def run(fake: FakeRuntimeApi, app: Application, test: Callable[[], Awaitable[None]]) -> list[float]:
    """Runs a runtime with this application while the test looks on; returns the seconds it was given each time."""
    given: list[float] = []

    def app_for(invocation: Invocation, seconds: float) -> Application:
        given.append(seconds)
        return app

    runtime = asyncio.create_task(LambdaRuntime(RuntimeApi(fake.address), app_for).run())
    try:
        await test()
    finally:
        runtime.cancel()
        await asyncio.gather(runtime, return_exceptions=True)
    return given


async def _answered(app: Application, event: Json) -> Posted:
    found: list[Posted] = []
    async with FakeRuntimeApi(("id-1", event)) as fake:

        async def test() -> None:
            found.append(await fake.shows(1))

        await run(fake, app, test)
    return found[0]


def answered(app: Application, event: Json = EVENT) -> Posted:
    """What the runtime posts for one invocation."""
    return asyncio.run(_answered(app, event))


def test_an_answer_byte_by_byte() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send(body(b"data: 1\n\n"))
        await send(body(b""))
        await send(body(b"x" * 300))
        await send(body(b"", more=False))

    post = answered(app)
    lines = post.head.decode().split("\r\n")
    assert lines[0] == "POST /2018-06-01/runtime/invocation/id-1/response HTTP/1.1"
    assert lines[1].startswith("Host: 127.0.0.1:")
    assert lines[2:] == [
        "Content-Type: application/vnd.awslambda.http-integration-response",
        "Lambda-Runtime-Function-Response-Mode: streaming",
        "Transfer-Encoding: chunked",
        "Trailer: Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body",
    ]
    prelude = b'{"statusCode":200,"headers":{"content-type":"text/event-stream"}}' + b"\0" * 8
    assert post.body == (
        b"%x\r\n" % len(prelude) + prelude + b"\r\n"
        b"9\r\ndata: 1\n\n\r\n"
        b"12c\r\n" + b"x" * 300 + b"\r\n"
        b"0\r\n\r\n"
    )  # fmt: skip


def test_repeated_headers_keep_all_their_values() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"vary", b"a"), (b"x", b"1"), (b"Vary", b"b")]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body"})

    first = answered(app).chunks[0]
    assert json.loads(first[:-8]) == {
        "statusCode": 503,
        "headers": {"x": "1"},
        "multiValueHeaders": {"vary": ["a", "b"]},
    }


def test_a_failure_before_the_answer_is_reported_as_an_error() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise LookupError("no such thing")

    post = answered(app)
    assert post.target == "/2018-06-01/runtime/invocation/id-1/error"
    assert post.headers["lambda-runtime-function-error-type"] == "Function.LookupError"
    assert json.loads(post.body) == {"errorType": "LookupError", "errorMessage": "no such thing", "stackTrace": []}


def test_a_failure_in_the_middle_is_told_behind_what_was_sent() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send(body(b"some"))
        raise LookupError("no more")

    post = answered(app)
    assert post.chunks[1:] == [b"some", b""]
    assert post.trailers["Lambda-Runtime-Function-Error-Type"] == "Function.LookupError"
    shown = json.loads(base64.b64decode(post.trailers["Lambda-Runtime-Function-Error-Body"]))
    assert (shown["errorType"], shown["errorMessage"]) == ("LookupError", "no more")


def test_an_application_that_ends_without_an_answer_has_failed() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        return

    assert answered(app).headers["lambda-runtime-function-error-type"] == "Function.RuntimeError"


@pytest.mark.parametrize("event", [{}, {"version": "2.0"}, {"httpMethod": "GET"}])
def test_what_is_no_request_is_an_error(event: Json) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("must not be called")

    assert answered(app, event).headers["lambda-runtime-function-error-type"] == "Function.NotHttp"


def test_invocations_come_one_after_the_other_whatever_becomes_of_them() -> None:
    async def story() -> None:
        calls = 0

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise LookupError("first")
            await send(START)
            await send(body(b"", more=False))

        async with FakeRuntimeApi(("id-1", EVENT), ("id-2", EVENT), ("id-3", EVENT)) as fake:

            async def test() -> None:
                await fake.shows(3)

            given = await run(fake, app, test)
            targets = [post.target.removeprefix("/2018-06-01/runtime/invocation/") for post in fake.posted]
        assert targets == ["id-1/error", "id-2/response", "id-3/response"]
        assert all(seconds > 1000 for seconds in given)

    asyncio.run(story())


def test_a_consumer_that_leaves_is_a_disconnect() -> None:
    async def story() -> None:
        left = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            assert await receive() == {"type": "http.request", "body": b"", "more_body": False}
            await send(START)
            await send(body(b"x" * 100))
            assert await receive() == {"type": "http.disconnect"}
            left.set()

        async with FakeRuntimeApi(("id-1", EVENT)) as fake:
            fake.refuses_after = 100

            async def test() -> None:
                async with asyncio.timeout(5):
                    await left.wait()

            await run(fake, app, test)

    asyncio.run(story())


def test_writing_to_nobody_ends_the_invocation_and_nothing_else() -> None:
    async def story() -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send(START)
            while True:
                await send(body(b"x" * 100))
                await asyncio.sleep(0)

        async with FakeRuntimeApi(("id-1", EVENT), ("id-2", EVENT)) as fake:
            fake.refuses_after = 1000

            async def test() -> None:
                await fake.shows(2)

            await run(fake, app, test)

    asyncio.run(story())


def test_a_runtime_api_that_refuses_ends_the_process() -> None:
    async def story() -> None:
        async with FakeRuntimeApi(("id-1", EVENT)) as fake:
            fake.next_status = 500
            with pytest.raises(RuntimeGone):
                await RuntimeApi(fake.address).next()
        with pytest.raises(RuntimeGone):
            await RuntimeApi("127.0.0.1:9").next()

    asyncio.run(story())


def test_a_start_that_failed_is_reported() -> None:
    async def story() -> Posted:
        async with FakeRuntimeApi() as fake:
            await RuntimeApi(fake.address).report_start(ValueError("MANGO_TABLE: missing"))
            return await fake.shows(1)

    post = asyncio.run(story())
    assert post.target == "/2018-06-01/runtime/init/error"
    assert json.loads(post.body)["errorMessage"] == "MANGO_TABLE: missing"


def test_the_scope_of_an_event() -> None:
    event = EVENT | {
        "path": "/v1/sessions/a%20b/events/stream",
        "multiValueQueryStringParameters": {"event_deltas[]": ["agent.message", "agent.thinking"], "after": ["1.2"]},
    }
    scope = scope_of(event)
    assert scope["path"] == "/v1/sessions/a b/events/stream"
    assert scope["query_string"] == (b"event_deltas%5B%5D=agent.message&event_deltas%5B%5D=agent.thinking&after=1.2")
    assert scope["headers"] == [(b"authorization", b"workspace"), (b"accept", b"text/event-stream")]


def test_single_values_do_where_there_are_no_lists_and_encoded_names_are_decoded() -> None:
    single = {"httpMethod": "get", "path": "/x", "headers": {"A": "1"}, "queryStringParameters": {"e%5B%5D": "v w"}}
    scope = scope_of(single)
    assert (scope["method"], scope["headers"]) == ("GET", [(b"a", b"1")])
    assert scope["query_string"] == b"e%5B%5D=v+w"


def test_the_stream_application_below_lambda() -> None:
    """A stream that the server ends, here since it stops, ends well and at an event boundary."""

    async def story() -> None:
        world = World()
        world.append("agent.message", "session.status_idle")
        first = EVENT | {"queryStringParameters": {"after": "0.0"}}
        async with FakeRuntimeApi(("id-1", first)) as fake:

            async def test() -> None:
                await fake.holds(1, b"session.status_idle")
                world.append("user.message")
                await fake.holds(1, b"user.message")
                world.hub.close()
                await fake.shows(1)

            await run(fake, world.app(), test)
            post = fake.posted[0]
        assert json.loads(post.chunks[0][:-8])["statusCode"] == 200
        assert b"".join(post.chunks[1:]).endswith(b"\n\n")
        assert (post.chunks[-1], post.trailers) == (b"", {})
        assert b"".join(post.chunks).count(b"data: ") == 3

    asyncio.run(story())


def test_a_refused_stream_is_an_ordinary_answer() -> None:
    async def story() -> None:
        world = World()
        async with FakeRuntimeApi(("id-1", EVENT | {"multiValueHeaders": {}})) as fake:

            async def test() -> None:
                await fake.shows(1)

            await run(fake, world.app(), test)
            chunks = fake.posted[0].chunks
        assert json.loads(chunks[0][:-8])["statusCode"] == 401
        assert json.loads(b"".join(chunks[1:]))["error"]["type"] == "authentication_error"

    asyncio.run(story())
