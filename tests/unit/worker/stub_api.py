"""A small HTTP server that speaks the work protocol, for one environment, one session and one work item at a time.

It keeps the rules that the worker depends on (compare-and-set of heartbeats, one result per open call, no result
without the lease) and can be told to fail: before it does what was asked, or after.
"""

import base64
import json
import queue
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ENVIRONMENT, SESSION = "env_1", "sesn_1"
KEY = "sk-mango-stub-environment-key"
TOKEN = "sess_mango_stubstubstubstubstubstubstubstubstub"
DEADLINE = 20.0

Event = dict[str, Any]


@dataclass
class Fault:
    """One failure to come. `before` says that the request is not carried out."""

    method: str
    path: str
    status: int | None  # None: the connection is cut without an answer
    before: bool
    times: int


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    token: str
    body: Any
    headers: dict[str, str]


@dataclass
class Work:
    id: str
    token: str
    kind: str = "session"
    state: str = "queued"
    claimed: bool = False
    last_heartbeat: str | None = None
    beats: int = 0
    stops: list[Any] = field(default_factory=list)


class StubApi:
    """Use as a context manager. All attributes may be read by tests; change them through methods."""

    def __init__(self, host: str = "127.0.0.1", ttl: int = 30, suffix: str = "") -> None:
        # Ids become names in a Docker engine that others may be using: `suffix` tells them apart.
        self.suffix = suffix
        self.session = SESSION + suffix
        self.ttl = ttl
        self.lock = threading.Condition()
        self.events: list[Event] = []
        self.requests: list[Request] = []
        self.works: dict[str, Work] = {}
        self.faults: list[Fault] = []
        self.session_status = "running"
        self.page_size = 1000
        self.streams: list[queue.SimpleQueue[Event | None]] = []
        self._server = _Server((host, 0), _Handler)
        self._server.stub = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> "StubApi":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut_streams()
        self._server.shutdown()
        self._server.close_all()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add_work(self, work_id: str = "work_1", kind: str = "session", token: str = TOKEN) -> Work:
        with self.lock:
            work = self.works[work_id] = Work(work_id + self.suffix, token, kind)
            self.lock.notify_all()
            return work

    def add_event(self, kind: str, **fields: Any) -> Event:
        """Append to history and stream; the event with its id."""
        with self.lock:
            number = len(self.events) + 1
            event = {"id": f"sevt_{number:04}", "type": kind, "processed_at": f"2026-01-01T00:00:00.{number:06}Z"}
            event.update(fields)
            self.events.append(event)
            for stream in self.streams:
                stream.put(event)
            self.lock.notify_all()
            return event

    def call(self, name: str, arguments: Any, **fields: Any) -> str:
        """The agent calls a tool; the call's id."""
        fields.setdefault("evaluated_permission", "allow")
        return str(self.add_event("agent.tool_use", name=name, input=arguments, **fields)["id"])

    def idle(self, reason: str = "end_turn") -> None:
        self.add_event("session.status_idle", stop_reason={"type": reason})

    def fail(self, method: str, path: str, status: int | None = 503, before: bool = True, times: int = 1) -> None:
        """Let the next requests whose path matches the expression `path` fail."""
        with self.lock:
            self.faults.append(Fault(method, path, status, before, times))

    def cut_streams(self) -> None:
        with self.lock:
            for stream in self.streams:
                stream.put(None)

    def results(self, call_id: str | None = None) -> list[Event]:
        with self.lock:
            found = [event for event in self.events if event["type"] == "user.tool_result"]
        return [event for event in found if call_id in (None, event["tool_use_id"])]

    def text(self, call_id: str) -> str:
        return str(self.results(call_id)[0]["content"][0]["text"])

    def seen(self, method: str, path: str) -> list[Request]:
        with self.lock:
            return [one for one in self.requests if one.method == method and re.search(path, one.path)]

    def wait_for(self, condition: Callable[[], Any], seconds: float = DEADLINE) -> None:
        """Wait until `condition` holds; it is looked at whenever something happens here."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain; requests: {[(r.method, r.path) for r in self.requests][-30:]}")
            with self.lock:
                self.lock.wait(0.05)

    def wait_for_result(self, call_id: str) -> Event:
        self.wait_for(lambda: self.results(call_id))
        return self.results(call_id)[0]

    # What requests do. Each returns a status and a body.

    def poll(self, request: Request) -> tuple[int, Any]:
        named = request.query.get("work_id", [None])[0]
        with self.lock:
            for work in self.works.values():
                if work.state == "queued" and not work.claimed and named in (None, work.id):
                    work.claimed = True
                    return 200, self.show(work, secret=True)
            if "block_ms" in request.query:
                self.lock.wait(0.1)
        return 200, None

    def show(self, work: Work, secret: bool = False) -> Any:
        encoded = base64.urlsafe_b64encode(json.dumps({"sessions_token": work.token}).encode()).decode().rstrip("=")
        data = {"type": work.kind, "id": self.session} if work.kind == "session" else {"type": work.kind}
        return {
            "id": work.id, "type": "work", "environment_id": ENVIRONMENT, "data": data, "state": work.state,
            "metadata": {}, "secret": encoded if secret else None, "created_at": "2026-01-01T00:00:00Z",
        }  # fmt: skip

    def work_call(self, request: Request, work_id: str, verb: str) -> tuple[int, Any]:
        with self.lock:
            work = next((one for one in self.works.values() if one.id == work_id), None)
            if work is None:
                return 404, "no such work item"
            if request.token not in ((KEY,) if verb == "ack" else (work.token, KEY)):
                return 401, "invalid credential"
            if verb == "ack":
                return self.ack(work)
            if verb == "stop":
                return self.stop(work, request)
            return self.heartbeat(work, request)

    def ack(self, work: Work) -> tuple[int, Any]:
        if work.state not in ("queued", "starting"):
            return 409, "work item is not awaiting acknowledgement"
        work.state = "starting"
        return 200, self.show(work)

    def stop(self, work: Work, request: Request) -> tuple[int, Any]:
        if work.state == "stopped":
            return 409, "work item is stopped"
        work.stops.append(request.body)
        work.state = "stopped" if request.body and request.body.get("force") else "stopping"
        return 200, self.show(work)

    def heartbeat(self, work: Work, request: Request) -> tuple[int, Any]:
        expected = request.query.get("expected_last_heartbeat", [""])[0]
        answer = {"type": "work_heartbeat", "ttl_seconds": self.ttl}
        if work.state in ("stopping", "stopped"):
            return 200, {
                **answer,
                "last_heartbeat": work.last_heartbeat or "",
                "lease_extended": False,
                "state": work.state,
            }
        previous = f"beat-{work.beats - 1}" if work.beats > 1 else "NO_HEARTBEAT"
        if expected == (work.last_heartbeat or "NO_HEARTBEAT"):
            work.beats += 1
            work.last_heartbeat = f"beat-{work.beats}"
        elif expected != previous:
            return 412, "heartbeat precondition failed"
        work.state = "active"
        return 200, {**answer, "last_heartbeat": work.last_heartbeat, "lease_extended": True, "state": "active"}

    def holds_lease(self, token: str) -> bool:
        return any(
            one.token == token and one.state in ("starting", "active", "stopping") for one in self.works.values()
        )

    def send(self, request: Request) -> tuple[int, Any]:
        with self.lock:
            if not self.holds_lease(request.token):
                return 412, "the lease is lost"
            echoed = []
            for event in request.body["events"]:
                identity = event["tool_use_id"]
                open_call = any(one["id"] == identity for one in self.events) and not self.answered(identity)
                if event["type"] != "user.tool_result" or not open_call:
                    return 400, f"tool_use_id {identity} is not open"
                echoed.append(
                    self.add_event(**{"kind": event["type"], **{k: v for k, v in event.items() if k != "type"}})
                )
            return 200, {"data": echoed}

    def answered(self, identity: str) -> bool:
        return any(
            one["type"] in ("user.tool_result", "agent.tool_result") and one["tool_use_id"] == identity
            for one in self.events
        )

    def history(self, request: Request) -> tuple[int, Any]:
        with self.lock:
            start = int(request.query.get("page", ["0"])[0])
            size = min(int(request.query["limit"][0]), self.page_size)
            following = str(start + size) if start + size < len(self.events) else None
            return 200, {"data": self.events[start : start + size], "next_page": following}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    stub: StubApi

    def __init__(self, *arguments: Any) -> None:
        self.connections: list[Any] = []
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.append(request)
        super().process_request(request, client_address)

    def close_all(self) -> None:
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(2)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave are part of the game."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self.respond("GET")

    def do_POST(self) -> None:
        self.respond("POST")

    def respond(self, method: str) -> None:
        stub, parts = self.server.stub, urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(method, parts.path, parse_qs(parts.query), token, json.loads(raw) if raw else None, headers)
        with stub.lock:
            stub.requests.append(request)
            fault = self.fault(stub, request)
            stub.lock.notify_all()
        if fault is not None and fault.before:
            self.answer_fault(fault)
            return
        if parts.path.endswith("/events/stream"):
            self.stream(stub, request)
            return
        status, body = self.dispatch(stub, request)
        if fault is not None:
            self.answer_fault(fault)
            return
        if status != 200:
            body = {"type": "error", "error": {"type": "error", "message": body}}
        self.answer(status, body)

    def fault(self, stub: StubApi, request: Request) -> Fault | None:
        for fault in stub.faults:
            if fault.times > 0 and fault.method == request.method and re.search(fault.path, request.path):
                fault.times -= 1
                return fault
        return None

    def answer_fault(self, fault: Fault) -> None:
        if fault.status is None:
            self.close_connection = True
            self.connection.shutdown(2)
        else:
            self.answer(fault.status, {"type": "error", "error": {"type": "error", "message": "planted fault"}})

    def dispatch(self, stub: StubApi, request: Request) -> tuple[int, Any]:
        work = re.fullmatch(rf"/v1/environments/{ENVIRONMENT}/work/([^/]+)(?:/(ack|heartbeat|stop))?", request.path)
        if work and work[1] == "poll":
            return stub.poll(request) if request.token == KEY else (401, "invalid API key")
        if work and work[2]:
            return stub.work_call(request, work[1], work[2])
        if request.path == f"/v1/sessions/{stub.session}":
            return 200, {"id": stub.session, "type": "session", "status": stub.session_status, "resources": []}
        if request.path == f"/v1/sessions/{stub.session}/events":
            return stub.send(request) if request.method == "POST" else stub.history(request)
        return 404, "not found"

    def answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self, stub: StubApi, request: Request) -> None:
        mine: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        with stub.lock:
            stub.streams.append(mine)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        self.wfile.write(b": open\n\n")
        while (event := mine.get()) is not None:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\nid: {event['id']}\n\n".encode())
        with stub.lock:
            stub.streams.remove(mine)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""
