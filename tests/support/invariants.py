"""What must hold of every session, whatever happened to it (architecture, section 4; design/model `check`)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mango.domain.thread import Status, Thread

Json = dict[str, Any]
RESULTS = {
    "user.tool_result": "tool_use_id",
    "agent.tool_result": "tool_use_id",
    "user.custom_tool_result": "custom_tool_use_id",
}
FOLD = {
    "session.status_running": Status.RUNNING,
    "session.status_idle": Status.IDLE,
    "session.status_rescheduled": Status.RESCHEDULING,
    "session.status_terminated": Status.TERMINATED,
}


def check_history(events: list[Json]) -> None:
    """Every event once; results exactly one a call and before the next request; spans paired; status moves sane."""
    doubled = [event_id for event_id, count in Counter(event["id"] for event in events).items() if count > 1]
    assert not doubled, f"doubled events {doubled}"
    unanswered: set[str] = set()
    span: str | None = None
    status, parked = Status.IDLE, False
    for event in events:
        if event["processed_at"] is None:
            continue  # waits, so it has no place in the order yet
        kind = event["type"]
        assert status is not Status.TERMINATED or kind == "user.interrupt", f"{kind} after the end"
        if kind in ("agent.tool_use", "agent.custom_tool_use"):
            unanswered.add(event["id"])
        elif kind in RESULTS:
            call = event[RESULTS[kind]]
            assert call in unanswered, f"result for {call}, which is not open"
            unanswered.remove(call)
        elif kind == "span.model_request_start":
            assert not unanswered, f"a request while {unanswered} have no result"
            assert span is None, "a request inside a request"
            span = event["id"]
        elif kind == "span.model_request_end":
            assert event["model_request_start_id"] == span
            span = None
        elif kind == "user.message":
            assert not unanswered, "a message between a call and its result"
        elif kind in FOLD:
            assert FOLD[kind] is not status or parked, f"{kind} twice in a row"
            status = FOLD[kind]
            parked = event.get("stop_reason", {}).get("type") == "requires_action"


def fold_status(events: list[Json]) -> Status:
    """The status that the history ends with."""
    moves = [FOLD[event["type"]] for event in events if event["type"] in FOLD]
    return moves[-1] if moves else Status.IDLE


def check_thread(thread: Thread, events: list[Json], now: int) -> None:
    """The thread item agrees with its history, and whatever is owed is due."""
    assert thread.status is fold_status(events)
    if thread.runnable(now) or thread.live(now):
        assert thread.due, "runnable or leased without due"
    if thread.status is Status.IDLE:
        assert not thread.owes and not thread.interrupts and not thread.holder


def check_at_rest(thread: Thread, events: list[Json], now: int) -> None:
    """Nothing moves any more, and nothing is owed."""
    check_history(events)
    check_thread(thread, events, now)
    assert thread.status in (Status.IDLE, Status.TERMINATED)
    assert not thread.due
    starts = sum(event["type"] == "span.model_request_start" for event in events)
    ends = sum(event["type"] == "span.model_request_end" for event in events)
    assert starts == ends
