"""HTTP/1.1 as uvicorn speaks it; but headers must come in time, and what is no HTTP is answered with our envelope."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from mango.api.app import error_response
from mango.api.errors import new_request_id
from mango.domain.errors import InvalidRequest

HEADER_SECONDS = 10.0
"""How long the headers of a request may take, from the connection or from their first byte on a connection in use."""
LINGER_SECONDS = 1.0
"""How long a refused client may take to read why; closing at once would take the answer away if it still sends."""


class HttpProtocol(H11Protocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._headers_due: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._expect_headers()
        else:
            self._expect_nothing()

    def _expect_headers(self) -> None:
        if self._headers_due is None and not (self._refused or self.transport.is_closing()):
            self._headers_due = self.loop.call_later(HEADER_SECONDS, self.timeout_keep_alive_handler)

    def _expect_nothing(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what h11 refuses; `msg` says no more than that."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()  # an answer has begun
            return
        if self.cycle is not None and not self.cycle.response_complete:
            # The application may be at work on what came before the mistake; its answer would be a second one.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._write(*_refusal())
        self._refused = True
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _write(self, *events: h11.Event) -> None:
        for event in events:
            data = self.conn.send(event)
            if data:
                self.transport.write(data)


def _refusal() -> tuple[h11.Event, ...]:
    answer = error_response(InvalidRequest("this is not a valid HTTP request"), new_request_id())
    headers = {**answer.headers, "content-length": str(len(answer.body)), "connection": "close"}
    head = h11.Response(status_code=answer.status, headers=list(headers.items()), reason=b"Bad Request")
    return head, h11.Data(data=answer.body), h11.EndOfMessage()
