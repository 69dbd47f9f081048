"""One uvicorn server on several sockets, which leaves signals to the command that runs it."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn

from mango_local.connection import Connection

log = logging.getLogger("mango.http")

GRACE_SECONDS = 5


class HttpServer(uvicorn.Server):
    """Serves until `stop`; then ends requests within `GRACE_SECONDS`."""

    def __init__(self, app: Any, *, access_log: bool, on_ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=Connection,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=access_log,
                server_header=False,
                proxy_headers=False,
                # Longer than clients keep idle connections: were we to close first, a request could meet the end.
                timeout_keep_alive=75,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._on_ready = on_ready

    def serve_on(self, sockets: Sequence[socket.socket]) -> None:
        """Blocks until it has stopped."""
        self.run(sockets=list(sockets))

    def stop(self) -> None:
        """May be called from a signal handler or another thread."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
