"""What our server adds to uvicorn's connections."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from mango.stream.app import DROP
from mango_local.http_protocol import HttpProtocol

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER without time: closing resets the connection."""


class Connection(HttpProtocol):
    """HTTP/1.1, with an extension of the scope by which the application can drop the connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        app: Any = self.app

        def drop() -> None:
            """Closes it without sending what is queued, which for a peer that does not read would take for ever."""
            # Else the kernel would go on holding megabytes for the peer, of a socket that is nobody's any more.
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            transport.abort()

        async def with_drop(scope: Any, receive: Any, send: Any) -> None:
            scope.setdefault("extensions", {})[DROP] = drop
            await app(scope, receive, send)

        self.app = with_drop
