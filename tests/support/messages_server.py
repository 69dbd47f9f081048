"""A local endpoint that speaks the streamed Messages protocol, and misbehaves where it is told to.

    with MessagesServer([text_answer("hello"), Failure(429, retry_after="2")]) as server:
        client = MessagesModel(server.url, "key")

Answers come from a list, one a request, or from a function of the recorded request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import pytest

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as it came in; header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: Json


@dataclass(frozen=True, slots=True)
class Stream:
    """A streamed answer: these events, with these faults."""

    events: Sequence[Json | bytes]
    """An event that is bytes is sent as it stands, and so can be malformed."""
    before_headers: float = 0.0
    """Seconds of silence before the status line."""
    before_events: float = 0.0
    """Seconds between the headers and the first event."""
    between_events: float = 0.0
    cut_before: int | None = None
    """The connection is cut before the event of this index; after the last when it is their number."""
    cut_inside: bool = False
    """With `cut_before`: half of that event is still sent."""
    clean_cut: bool = False
    """With `cut_before`: the body ends as if it were complete."""
    content_type: str = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer with an error's status."""

    status: int
    type: str = "api_error"
    message: str = "no"
    retry_after: str | None = None
    body: bytes | None = None
    """Instead of the protocol's envelope."""
    headers: dict[str, str] = field(default_factory=dict)


Answer = Stream | Failure
Script = Sequence[Answer] | Callable[[Recorded], Answer]


def answer_events(
    content: Sequence[Json], stop_reason: str | None = "end_turn", usage: Json | None = None, **delta: Any
) -> list[Json]:
    """The events of an answer with these blocks: two deltas for whatever comes in deltas."""
    first = {"input_tokens": 7, "output_tokens": 1, **(usage or {})}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": first}
    events: list[Json] = [{"type": "message_start", "message": {**message, "stop_reason": None}}, {"type": "ping"}]
    for index, block in enumerate(content):
        start, deltas = _split(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": each} for each in deltas]
        events.append({"type": "content_block_stop", "index": index})
    final = {"stop_reason": stop_reason, "stop_sequence": None, **delta}
    events.append({"type": "message_delta", "delta": final, "usage": {"output_tokens": 11}})
    return [*events, {"type": "message_stop"}]


def text_answer(text: str, **faults: Any) -> Stream:
    """A streamed answer that is this text."""
    return Stream(answer_events([{"type": "text", "text": text}]), **faults)


def tool_answer(name: str, arguments: Json, tool_use_id: str = "toolu_1", **faults: Any) -> Stream:
    """A streamed answer that calls this tool."""
    block = {"type": "tool_use", "id": tool_use_id, "name": name, "input": arguments}
    return Stream(answer_events([block], "tool_use"), **faults)


def _split(block: Json) -> tuple[Json, list[Json]]:
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in _halves(block["text"])]
    if block["type"] == "thinking":
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": part} for part in _halves(block["thinking"])]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
    if block["type"] in ("tool_use", "server_tool_use"):
        parts = _halves(json.dumps(block["input"])) if block["input"] else [""]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return block, []


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


class MessagesServer:
    """The server, on a free port of the loopback interface, from entering to leaving the context."""

    def __init__(self, script: Script = ()) -> None:
        self.requests: list[Recorded] = []
        self.disconnected = threading.Event()
        """Set when a client was found to have gone while an answer was being sent."""
        self.arrived = threading.Event()
        """Set when the first request has been read."""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._script = script
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="messages-server")

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def play(self, script: Script) -> None:
        """Goes on with this script, from its start."""
        with self._lock:
            self._script = script
            self.requests.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()  # waits for the requests under way
        self._thread.join()

    def next_answer(self, request: Recorded) -> Answer:
        """Records the request and says what it gets."""
        with self._lock:
            self.requests.append(request)
            number, script = len(self.requests), self._script
        self.arrived.set()
        if callable(script):
            return script(request)
        if number > len(script):
            return Failure(500, message=f"the script has no answer to request {number}")
        return script[number - 1]

    def pause(self, seconds: float) -> None:
        """Waits, but no longer than the server lives."""
        if seconds:
            self._stopping.wait(seconds)


class _Server(ThreadingHTTPServer):
    owner: MessagesServer
    daemon_threads = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.owner.next_answer(Recorded(self.path, headers, body))
        self.close_connection = True
        try:
            if isinstance(answer, Failure):
                self._fail(answer)
            else:
                self._stream(answer)
        except OSError:
            self.server.owner.disconnected.set()

    def _fail(self, failure: Failure) -> None:
        error = {"type": "error", "error": {"type": failure.type, "message": failure.message}}
        body = json.dumps(error).encode() if failure.body is None else failure.body
        self.send_response(failure.status)
        if failure.retry_after is not None:
            self.send_header("retry-after", failure.retry_after)
        for name, value in {"content-type": "application/json", **failure.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, stream: Stream) -> None:
        pause = self.server.owner.pause
        pause(stream.before_headers)
        self.send_response(200)
        self.send_header("content-type", stream.content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        pause(stream.before_events)
        for index, data in enumerate(_encoded(stream.events)):
            if index == stream.cut_before:
                if stream.cut_inside:
                    self._chunk(data[: len(data) // 2])
                break
            if index:
                pause(stream.between_events)
            self._chunk(data)
        if stream.cut_before is None or stream.clean_cut:
            self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the requests are recorded."""


def _encoded(events: Sequence[Json | bytes]) -> Iterator[bytes]:
    for event in events:
        if isinstance(event, bytes):
            yield event
        else:
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


@pytest.fixture
def messages_server() -> Iterator[MessagesServer]:
    """A server without a script: give it one with `play`. Import this name in a test module or its conftest."""
    with MessagesServer() as server:
        yield server
