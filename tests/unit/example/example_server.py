"""A server of prepared answers, behind the stock client: what the example does is seen in the requests it makes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import httpx2
from anthropic import AsyncAnthropic

T = TypeVar("T")
Json = dict[str, Any]
SESSION = "sesn_1"
ANCHOR = "sevt_anchor"
WHEN = "2026-01-01T00:00:00Z"


class Streamed(httpx2.AsyncByteStream):
    """Server-sent events, and then the end or an error."""

    def __init__(self, events: list[Json], error: Exception | None = None) -> None:
        self._events, self._error = events, error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self._events:
            yield f"event: message\ndata: {json.dumps(event)}\n\n".encode()
        if self._error is not None:
            raise self._error


class Server:
    """Answers by method and path. A list of answers is used up one by one, its last one for ever."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self.asked: list[str] = []
        """Method and path of every request, with the query if there is one."""
        self.sent: list[Json] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        path = url.path + (f"?{url.query.decode()}" if url.query else "")
        self.asked.append(f"{request.method} {path}")
        if request.method == "POST" and (content := await request.aread()):
            self.sent.append(json.loads(content))
        answer = self._answers[f"{request.method} {path}"]
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Streamed):
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=answer)
        if isinstance(answer, int):
            failure = {"type": "error", "error": {"type": "api_error", "message": "prepared"}}
            return httpx2.Response(answer, json=failure, headers={"x-should-retry": "false"})
        return httpx2.Response(200, json=answer)

    async def use(self, action: Callable[[AsyncAnthropic], Awaitable[T]]) -> T:
        """Lets `action` talk to this server."""
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self))
        async with AsyncAnthropic(api_key="key", base_url="http://mango.test", http_client=http) as client:
            return await action(client)


def message(identity: str = ANCHOR) -> Json:
    return {"id": identity, "type": "user.message", "content": [{"type": "text", "text": "go"}], "processed_at": WHEN}


def said(text: str) -> Json:
    content = [{"type": "text", "text": text}]
    return {"id": f"sevt_{abs(hash(text))}", "type": "agent.message", "content": content, "processed_at": WHEN}


def call(identity: str, name: str = "bash", permission: str = "allow", kind: str = "agent.tool_use") -> Json:
    event = {"id": identity, "type": kind, "name": name, "input": {"command": "true"}, "processed_at": WHEN}
    return event if kind == "agent.custom_tool_use" else {**event, "evaluated_permission": permission}


def result(call_id: str, is_error: bool = False) -> Json:
    event = {"id": f"{call_id}_result", "type": "user.tool_result", "tool_use_id": call_id, "processed_at": WHEN}
    return {**event, "content": [{"type": "text", "text": "..."}], "is_error": is_error}


def idle(reason: str = "end_turn", *event_ids: str) -> Json:
    stop = {"type": reason, "event_ids": list(event_ids)} if event_ids else {"type": reason}
    identity = f"sevt_idle_{reason}_{'_'.join(event_ids)}"
    return {"id": identity, "type": "session.status_idle", "stop_reason": stop, "processed_at": WHEN}


TURN = [
    message(),
    said("I run the tests."),
    call("sevt_call"),
    idle("requires_action", "sevt_call"),
    result("sevt_call"),
    said("They pass."),
    idle(),
]
"""A turn that ends well."""
