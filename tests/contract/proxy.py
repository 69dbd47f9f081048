"""A TCP proxy that loses requests and answers, to find out what an adapter makes of it."""

from __future__ import annotations

import contextlib
import socket
import threading
from enum import Enum, auto
from types import TracebackType

_SECONDS = 10.0


class Mode(Enum):
    """What happens to requests."""

    PASS = auto()
    LOSE_ANSWER = auto()
    """It is carried out; the connection is closed instead of an answer."""
    LOSE_REQUEST = auto()
    """The connection is closed, nothing is carried out."""
    HOLD = auto()
    """The connection is closed; `deliver` carries the request out later."""
    SILENT = auto()
    """It is carried out; there is no answer, but the connection stays."""
    FAIL = auto()
    """It is carried out; the answer is 503."""
    TRUNCATE = auto()
    """It is carried out; the answer comes but for its last byte, then the connection is closed."""


_FAILURE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


class Proxy:
    """Listens on a port of its own while used as a context manager. Requests must fit into a few reads."""

    def __init__(self, target: str) -> None:
        host, port = target.removeprefix("http://").split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._held: list[bytes] = []
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self.mode = Mode.PASS
        self.requests = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def deliver(self) -> None:
        """Carries out what was held."""
        held, self._held = self._held, []
        for request in held:
            self._ask(request)

    def __enter__(self) -> Proxy:
        self._spawn(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_SECONDS)

    def _spawn(self, target: object, *arguments: object) -> None:
        assert callable(target)
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                self._spawn(self._serve, connection)

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while request := _message(client):
                self.requests += 1
                if not self._treat(client, request):
                    return

    def _treat(self, client: socket.socket, request: bytes) -> bool:
        """Whether the connection goes on."""
        mode = self.mode
        if mode is Mode.HOLD:
            self._held.append(request)
        if mode in (Mode.HOLD, Mode.LOSE_REQUEST):
            return False
        answer = self._ask(request)
        if mode is Mode.LOSE_ANSWER:
            return False
        if mode is Mode.TRUNCATE:
            client.sendall(answer[:-1])
            return False
        if mode is not Mode.SILENT:
            client.sendall(_FAILURE if mode is Mode.FAIL else answer)
        return True

    def _ask(self, request: bytes) -> bytes:
        with socket.create_connection(self._target, _SECONDS) as upstream:
            upstream.sendall(request)
            return _message(upstream)


def _message(source: socket.socket) -> bytes:
    """One HTTP message with a Content-Length; empty at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = source.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += source.recv(65536)
    return head + b"\r\n\r\n" + body
