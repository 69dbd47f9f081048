"""Reads one streamed request in a thread of its own, so that the caller can leave at any moment.

A thread that waits for bytes cannot be woken by closing what it reads; only shutting the socket down wakes it. So
each request has its own connection, whose sockets are known, and none is kept for the next: a handshake costs
little beside a model's answer, and a cut never hits another request. The caller waits on a queue, so that it can
also leave while a name is being resolved or a connection made, which nothing can interrupt.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mango.ports import Cancellation, Cancelled

if TYPE_CHECKING:
    import ssl

    import httpx2

CONNECT_LIMIT = 10.0


class TimeLimitReached(Exception):
    """The request took longer than it may."""


class Connection:
    """The sockets of one request, which any thread may cut."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._cut = False

    def cut(self) -> None:
        """Ends what goes on, and whatever is connected later. May be repeated."""
        with self._lock:
            self._cut = True
            for each in self._sockets:
                _shut(each)

    def watch(self, request: httpx2.Request) -> None:
        """Hook of the HTTP client: learns the sockets that this request will use."""
        request.extensions = {**request.extensions, "trace": self._trace}

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        # TLS makes a new socket object of the connection's, so the last one counts.
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            connected = info["return_value"].get_extra_info("socket")
            with self._lock:
                self._sockets.append(connected)
                if self._cut:
                    _shut(connected)


def _shut(connected: socket.socket) -> None:
    # The plain socket's method: that of a TLS socket would also change what the reading thread is using.
    with suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


class _Reader:
    """Hands the events over, and at the end how it came about; an exception is raised where it is waited for."""

    def __init__(self, handed: queue.SimpleQueue[Any]) -> None:
        self._handed = handed

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> bool:
        self._handed.put(_End(error))
        return True


def read_events(
    open_stream: Callable[[httpx2.Client], Iterator[Any]],
    cancellation: Cancellation,
    time_limit: float,
    idle_limit: float,
) -> Generator[Any, None, None]:
    """The events of the stream that `open_stream` opens with an HTTP client of its own.

    The connection is cut as soon as the caller stops reading. `idle_limit` bounds the silence between two reads.

    Raises:
        Cancelled: `cancellation` asked for it.
        TimeLimitReached: `time_limit` seconds have passed.
    """
    connection = Connection()
    handed: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def stop() -> None:
        connection.cut()
        handed.put(_End(Cancelled()))

    def read() -> None:
        with _Reader(handed), _http_client(connection, idle_limit) as http_client:
            for event in open_stream(http_client):
                handed.put(event)

    cancellation.on_cancel(stop)
    cancellation.check()
    deadline = time.monotonic() + time_limit
    # A daemon: a thread that is still connecting must not keep the process from ending.
    threading.Thread(target=read, name="model-request", daemon=True).start()
    try:
        yield from _wait(handed, cancellation, deadline)
    finally:
        connection.cut()


def _wait(handed: queue.SimpleQueue[Any], cancellation: Cancellation, deadline: float) -> Iterator[Any]:
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeLimitReached
        try:
            item = handed.get(timeout=left)
        except queue.Empty:
            raise TimeLimitReached from None
        # Whatever the cut did to the reading thread, the caller shall learn what was wanted.
        cancellation.check()
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            return
        yield item


def _http_client(connection: Connection, idle_limit: float) -> httpx2.Client:
    import anthropic
    import httpx2

    # Redirects are not followed: a header with the key would follow to wherever they point.
    return anthropic.DefaultHttpxClient(
        verify=_tls_context(),
        timeout=httpx2.Timeout(idle_limit, connect=CONNECT_LIMIT),
        limits=httpx2.Limits(max_keepalive_connections=0),
        follow_redirects=False,
        event_hooks={"request": [connection.watch]},
    )


@cache
def _tls_context() -> ssl.SSLContext:
    """Made once: loading the certificates costs more than everything else here."""
    import httpx2

    return httpx2.create_ssl_context()
