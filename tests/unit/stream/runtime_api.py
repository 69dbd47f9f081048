"""A local server that plays Lambda's runtime API, and keeps every byte that a runtime sends it."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

Json = dict[str, Any]


@dataclass
class Posted:
    """A request that the runtime made; the body as it came over the wire, chunks and all."""

    target: str
    head: bytes
    body: bytes = b""
    complete: bool = False
    writer: asyncio.StreamWriter | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode().split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}

    @property
    def chunks(self) -> list[bytes]:
        """The chunks that have come whole; the last is empty once the body has ended."""
        found, rest = [], self.body
        while b"\r\n" in rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            if len(rest) < length:
                break
            found.append(rest[:length])
            if not length:
                break
            rest = rest[length + 2 :]
        return found

    @property
    def trailers(self) -> dict[str, str]:
        _, _, tail = self.body.rpartition(b"\r\n0\r\n")
        return dict(line.split(": ", 1) for line in tail.decode().split("\r\n") if line)


class FakeRuntimeApi:
    """Gives invocations in order; then `next` waits for ever, as the real one does while a function is frozen."""

    def __init__(self, *invocations: tuple[str, Json | bytes], deadline: int = 4_000_000_000_000) -> None:
        self.posted: list[Posted] = []
        self.changed = asyncio.Condition()
        self.asked = 0
        """How often the runtime asked for an invocation."""
        self.next_status = 200
        self.refuses_after: int | None = None
        """Answers and closes when so many bytes of a body have come: the client of the stream has left."""
        self._invocations = deque(invocations)
        self._deadline = deadline
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    async def __aenter__(self) -> FakeRuntimeApi:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def shows(self, count: int, *, complete: bool = True) -> Posted:
        """The post of that number, when it has come (whole)."""

        def there() -> bool:
            return len(self.posted) >= count and (self.posted[count - 1].complete or not complete)

        async with self.changed, asyncio.timeout(20):
            await self.changed.wait_for(there)
        return self.posted[count - 1]

    async def holds(self, number: int, wanted: bytes) -> Posted:
        """The post of that number, when its body holds these bytes."""
        async with self.changed, asyncio.timeout(20):
            await self.changed.wait_for(lambda: len(self.posted) >= number and wanted in self.posted[number - 1].body)
        return self.posted[number - 1]

    async def asks(self, times: int) -> None:
        """Until the runtime has asked so often: what it was given before is done with."""
        async with self.changed, asyncio.timeout(20):
            await self.changed.wait_for(lambda: self.asked >= times)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._exchange(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        if method == "GET":
            await self._give(writer)
            return
        post = Posted(target, head[:-4], writer=writer)
        self.posted.append(post)
        if "content-length" in post.headers:
            post.body = await reader.readexactly(int(post.headers["content-length"]))
        else:
            await self._receive(reader, post)
        post.complete = True
        writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        await self._tell()

    async def _receive(self, reader: asyncio.StreamReader, post: Posted) -> None:
        while not post.chunks or post.chunks[-1] != b"" or not post.body.endswith(b"\r\n\r\n"):
            data = await reader.read(65536)
            if not data:
                raise ConnectionError("the runtime left")
            post.body += data
            await self._tell()
            if self.refuses_after is not None and len(post.body) >= self.refuses_after:
                return

    async def _give(self, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        await self._tell()
        if not self._invocations:
            await asyncio.Event().wait()
        request_id, event = self._invocations.popleft()
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        writer.write(
            f"HTTP/1.1 {self.next_status} OK\r\nLambda-Runtime-Aws-Request-Id: {request_id}\r\n"
            f"Lambda-Runtime-Deadline-Ms: {self._deadline}\r\nLambda-Runtime-Trace-Id: Root=1-2-3\r\n"
            f"Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode()
            + body
            + b"\r\n0\r\n\r\n"
        )
        await writer.drain()

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()
