"""The stream function as Lambda starts it: its wrapper script, its runtime, the real table."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import mango
from mango.handlers import round as round_
from tests.unit.handlers.functions import Deployed, LambdaContext, example, lines, metrics
from tests.unit.stream.runtime_api import FakeRuntimeApi

PACKAGE = Path(next(iter(mango.__path__)))


@asynccontextmanager
async def started(fake: FakeRuntimeApi, **changes: str) -> AsyncIterator[Process]:
    """The function's process."""
    environment = os.environ | {
        "AWS_LAMBDA_RUNTIME_API": fake.address,
        "LAMBDA_TASK_ROOT": str(PACKAGE.parent),
        "PYTHONPATH": "",
    }
    process = await asyncio.create_subprocess_exec(
        str(PACKAGE / "handlers" / "stream-runtime"),
        sys.executable,
        "/var/runtime/bootstrap.py",
        env=environment | changes,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def test_it_streams_a_session_and_counts_it(deployed: Deployed) -> None:
    ids = deployed.session("hello")
    round_.handler(ids, LambdaContext())
    event = example("stream")
    event["path"] = f"/v1/sessions/{ids['session_id']}/events/stream"

    async def story() -> tuple[bytes, bytes, bytes]:
        async with FakeRuntimeApi(("id-1", event)) as fake, started(fake) as process:
            post = await fake.holds(1, b"event: session.status_idle")
            assert post.writer is not None
            post.writer.close()  # the client leaves
            await fake.asks(2)
            process.terminate()
            output, logged = await process.communicate()
            return b"".join(post.chunks), output, logged

    streamed, output, logged = asyncio.run(story())
    prelude, _, frames = streamed.partition(b"\0" * 8)
    assert json.loads(prelude)["headers"]["content-type"] == "text/event-stream"
    shown = [json.loads(line[6:])["type"] for line in frames.decode().splitlines() if line.startswith("data: ")]
    assert shown == deployed.types(ids["session_id"])
    assert frames.endswith(b"\n\n")
    counted = metrics(output.decode())
    assert counted["Streams"] == 1
    assert counted["StreamSeconds"] > 0
    assert all(line["request_id"] == "id-1" for line in lines(logged.decode()))


def test_a_session_that_is_not_there_is_an_answer(deployed: Deployed) -> None:
    async def story() -> bytes:
        async with FakeRuntimeApi(("id-1", example("stream"))) as fake, started(fake):
            return b"".join((await fake.shows(1)).chunks)

    prelude, _, body = asyncio.run(story()).partition(b"\0" * 8)
    assert json.loads(prelude)["statusCode"] == 404
    assert json.loads(body)["error"]["type"] == "not_found_error"


def test_a_start_without_its_variables_is_told_to_lambda(deployed: Deployed) -> None:
    async def story() -> tuple[str, str, int | None]:
        async with FakeRuntimeApi() as fake, started(fake, MANGO_TABLE="") as process:
            post = await fake.shows(1)
            await process.communicate()
            return post.target, json.loads(post.body)["errorMessage"], process.returncode

    target, said, code = asyncio.run(story())
    assert target == "/2018-06-01/runtime/init/error"
    assert "MANGO_TABLE" in said
    assert code == 1
