"""The stream function: the SSE application below a Lambda runtime of its own, `python -m mango.handlers.stream`."""

from __future__ import annotations

import asyncio
import os
import time
from typing import NamedTuple

from mango.api.auth import authenticate_headers
from mango.api.errors import envelope
from mango.handlers.measures import COUNT, SECONDS, Measure
from mango.handlers.observing import Observing
from mango.handlers.settings import StreamSettings
from mango.handlers.wiring import make_parts, reading_context
from mango.services.context import Context
from mango.stream.app import StreamApp
from mango.stream.feed import Pace
from mango.stream.hub import Hub
from mango.stream.lambda_runtime import Invocation, RuntimeApi
from mango.stream.lambda_streaming import Application, LambdaRuntime, Receive, Scope, Send
from mango.stream.opening import target_of

PACE = Pace(active=0.25, idle=1.0)
"""Each look reads two small items. Nobody announces commits here: they are made by other functions."""
MARGIN_SECONDS = 10.0
"""The server ends a stream so long before Lambda would cut it."""


class _Called(NamedTuple):
    aws_request_id: str


class Streaming:
    """What serves the streams of this process, one after the other."""

    def __init__(self, ctx: Context, observing: Observing, stream_seconds: float) -> None:
        self._ctx = ctx
        self._hub = Hub(ctx, pace=PACE)
        self._observing = observing
        self._stream_seconds = stream_seconds

    def app_for(self, invocation: Invocation, seconds: float) -> Application:
        """The application for one invocation."""
        lasts = max(1.0, min(self._stream_seconds, seconds - MARGIN_SECONDS))
        app = StreamApp(self._ctx, self._hub, authenticate=authenticate_headers, envelope=envelope, max_seconds=lasts)

        async def observed(scope: Scope, receive: Receive, send: Send) -> None:
            target, began = target_of(scope["path"]), time.monotonic()
            ids = {"session_id": target.session_id, "thread_id": target.thread_id or ""} if target else {}
            with self._observing.invocation(_Called(invocation.request_id), **ids):
                try:
                    await app(scope, receive, send)
                finally:
                    taken = time.monotonic() - began
                    self._observing.add((Measure("Streams", COUNT, 1), Measure("StreamSeconds", SECONDS, taken)))

        return observed


def make_streaming() -> Streaming:
    """Raises `SettingsError`."""
    settings = StreamSettings.read(os.environ)
    parts = make_parts("stream", settings)
    return Streaming(reading_context(settings, parts.clients, parts.store), parts.observing, settings.stream_seconds)


async def serve(address: str) -> None:
    """Runs below the runtime API at this address, as long as the process lives."""
    api = RuntimeApi(address)
    try:
        streaming = make_streaming()
    except Exception as error:  # the outermost place: Lambda shows why the start failed
        await api.report_start(error)
        raise
    await LambdaRuntime(api, streaming.app_for).run()


if __name__ == "__main__":
    asyncio.run(serve(os.environ["AWS_LAMBDA_RUNTIME_API"]))
