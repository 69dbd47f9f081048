"""One base URL where the API's own gateway cannot stream: streams from here, everything else from there."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence

from mango.api.auth import authenticate_headers
from mango.api.errors import envelope
from mango.aws.clients import AwsSettings, Clients
from mango.aws.store import DynamoStore
from mango.handlers.settings import Settings, SettingsError
from mango.handlers.wiring import reading_context
from mango.stream.app import StreamApp
from mango.stream.feed import Pace
from mango.stream.hub import Hub
from mango.stream.opening import target_of
from mango_local.loopback_only import KeepDevelopmentKeyHome
from mango_local.passthrough import Application, PassThrough, Receive, Scope, Send
from mango_local.server import HttpServer
from mango_local.upstream import GatewayRefused, Upstream

PACE = Pace(active=0.25, idle=1.0)
"""Nobody announces commits here: they are made elsewhere."""


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Which table to read. Raises `GatewayRefused`."""
    try:
        return Settings.read(environ)
    except SettingsError as error:
        raise GatewayRefused(f"the environment must say what was deployed: {error}") from None


class Gateway:
    """The ASGI application."""

    def __init__(self, streams: Application, others: PassThrough) -> None:
        self._streams = streams
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] != "http":
            raise ValueError(f"cannot serve {scope['type']!r}")
        elif scope["method"] == "GET" and target_of(scope["path"]) is not None:
            await self._streams(scope, receive, send)
        else:
            await self._others(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self._others.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


class GatewayServer:
    """The gateway behind a server of its own."""

    def __init__(
        self, settings: Settings, upstream: Upstream, *, access_log: bool, on_ready: Callable[[], None]
    ) -> None:
        clients = Clients(AwsSettings(settings.region, settings.endpoint_url))
        ctx = reading_context(settings, clients, DynamoStore(clients.dynamodb, settings.table))
        self._hub = Hub(ctx, pace=PACE)
        streams = StreamApp(ctx, self._hub, authenticate=authenticate_headers, envelope=envelope)
        # An emulated deployment knows it, and this server may be reached from containers.
        app = KeepDevelopmentKeyHome(Gateway(streams, PassThrough(upstream)))
        self._server = HttpServer(app, access_log=access_log, on_ready=on_ready)

    def run(self, sockets: Sequence[socket.socket]) -> None:
        """Serves in this thread until `stop`."""
        self._server.serve_on(sockets)

    def stop(self) -> None:
        """Ends streams at an event boundary, then requests. Does not wait."""
        self._hub.close()
        self._server.stop()
