"""The API behind a real server on loopback, and a hand-held connection to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from mango.api.asgi import Application, create_asgi
from tests.unit.api.desk import Desk


@contextmanager
def served(
    desk: Desk, stream_app: Application | None = None, wrap: Callable[[Application], Application] = lambda app: app
) -> Iterator[str]:
    """The base URL of the desk's API, with something around it if `wrap` says so."""
    app = wrap(create_asgi(desk.ctx, desk.api, stream_app))
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=asyncio.run, args=(server.serve(),), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.01)
    (listening,) = server.servers
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()
