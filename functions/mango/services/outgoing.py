"""The events that the product itself writes, in wire form (wire contract, sections 2.5 and 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mango.domain.ledger import Event
from mango.domain.thread import Thread
from mango.ports import Ids, ModelUsage


def event(ids: Ids, type_: str, **fields: Any) -> Event:
    """An event with a fresh id."""
    return {"id": ids.new("sevt"), "type": type_, **fields}


def _of_thread(thread: Thread) -> dict[str, str]:
    return {"session_thread_id": thread.thread_id, "agent_name": thread.agent_name}


def running(ids: Ids, thread: Thread) -> list[Event]:
    """The thread leaves idle (decision 15: thread events for the primary too)."""
    return [
        event(ids, "session.status_running"),
        event(ids, "session.thread_status_running", **_of_thread(thread)),
    ]


def idle(ids: Ids, thread: Thread, now: int, stop_reason: Event, stop_details: Event | None = None) -> list[Event]:
    """The thread comes to rest; `session.usage` stands directly before `session.status_idle` (decision 14)."""
    details = {"stop_details": stop_details} if stop_details else {}
    return [
        event(ids, "session.thread_status_idle", **_of_thread(thread), stop_reason=stop_reason, **details),
        event(ids, "session.usage", usage=usage(thread, now), budget=None),
        event(ids, "session.status_idle", stop_reason=stop_reason, **details),
    ]


def end_turn() -> Event:
    return {"type": "end_turn"}


def requires_action(event_ids: Sequence[str]) -> Event:
    return {"type": "requires_action", "event_ids": list(event_ids)}


def retries_exhausted() -> Event:
    return {"type": "retries_exhausted"}


def rescheduled(ids: Ids, thread: Thread) -> list[Event]:
    return [
        event(ids, "session.thread_status_rescheduled", **_of_thread(thread)),
        event(ids, "session.status_rescheduled"),
    ]


def terminated(ids: Ids, thread: Thread) -> list[Event]:
    return [
        event(ids, "session.thread_status_terminated", **_of_thread(thread)),
        event(ids, "session.status_terminated"),
    ]


def error(ids: Ids, kind: str, message: str, retry_status: str) -> Event:
    """`session.error`; `retry_status` is retrying, exhausted or terminal."""
    return event(ids, "session.error", error={"type": kind, "message": message, "retry_status": {"type": retry_status}})


def span_start(ids: Ids) -> Event:
    return event(ids, "span.model_request_start")


def span_end(ids: Ids, start_id: str, spent: ModelUsage, *, is_error: bool) -> Event:
    return event(
        ids,
        "span.model_request_end",
        model_request_start_id=start_id,
        is_error=is_error,
        model_usage={
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "cache_creation_input_tokens": spent.cache_creation_input_tokens,
            "cache_read_input_tokens": spent.cache_read_input_tokens,
            "speed": None,
        },
    )


def closing_result(ids: Ids, call_kind: str, call_id: str, text: str) -> Event:
    """An error result that the server gives a call it closes, in the form the stock runner counts (decision 39)."""
    type_, name = (
        ("user.tool_result", "tool_use_id")
        if call_kind == "worker"
        else ("user.custom_tool_result", "custom_tool_use_id")
    )
    content = [{"type": "text", "text": text}]
    return event(ids, type_, **{name: call_id}, content=content, is_error=True, session_thread_id=None)


def refused_result(ids: Ids, call_id: str, text: str) -> Event:
    """The result of a call that must not run: denied, or no such tool."""
    return event(ids, "agent.tool_result", tool_use_id=call_id, content=[{"type": "text", "text": text}], is_error=True)


def usage(thread: Thread, now: int) -> dict[str, Any]:
    """The usage object of sessions, threads and `session.usage`. Prices come with budgets; until then no cost."""
    return {
        "input_tokens": thread.input_tokens,
        "output_tokens": thread.output_tokens,
        "cache_read_input_tokens": thread.cache_read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": thread.cache_creation_tokens,
            "ephemeral_1h_input_tokens": 0,
        },
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "active_seconds": thread.active_micros(now) / 1_000_000,
        "list_cost": None,
    }
