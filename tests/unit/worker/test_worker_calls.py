"""Which calls are due."""

from typing import Any

import pytest

from mango_worker.item.calls import Calls, Event


def event(number: int, kind: str, **fields: Any) -> Event:
    return {"id": f"e{number}", "type": kind, "processed_at": "2026-01-01T00:00:00Z", **fields}


def use(number: int, **fields: Any) -> Event:
    return event(number, "agent.tool_use", **{"name": "bash", "input": {}, "evaluated_permission": "allow", **fields})


def due(*events: Event) -> str | None:
    calls = Calls({"bash"})
    for one in events:
        calls.apply(one)
    call = calls.next_due()
    return None if call is None else call.id


RESULT = event(9, "user.tool_result", tool_use_id="e1")
ALLOWED = event(8, "user.tool_confirmation", tool_use_id="e1", result="allow")
DENIED = event(8, "user.tool_confirmation", tool_use_id="e1", result="deny")


def test_calls_are_due_in_order_and_once() -> None:
    calls = Calls({"bash"})
    assert calls.apply(use(1)) and calls.apply(use(2))
    assert not calls.apply(use(1))
    for expected in ("e1", "e2"):
        call = calls.next_due()
        assert call is not None and call.id == expected
        calls.close(call.id)
    assert calls.next_due() is None
    calls.apply(use(1))
    assert calls.next_due() is None


def test_an_answer_closes_a_call_whatever_comes_first() -> None:
    assert due(use(1), RESULT) is None
    assert due(RESULT, use(1)) is None
    assert due(use(1), event(9, "agent.tool_result", tool_use_id="e1")) is None


@pytest.mark.parametrize("permission", [None, "allow"])
def test_allowed_calls_run_at_once(permission: str | None) -> None:
    assert due(use(1, evaluated_permission=permission)) == "e1"


@pytest.mark.parametrize("permission", ["ask", "something new"])
def test_others_wait_for_a_confirmation(permission: str) -> None:
    asked = use(1, evaluated_permission=permission)
    assert due(asked) is None
    assert due(asked, ALLOWED) == due(ALLOWED, asked) == "e1"
    assert due(asked, DENIED) is None
    assert due(asked, DENIED, {**ALLOWED, "id": "e7"}) is None


def test_a_call_that_waits_does_not_hold_up_the_next() -> None:
    assert due(use(1, evaluated_permission="ask"), use(2)) == "e2"


def test_denied_calls_never_run() -> None:
    denied = use(1, evaluated_permission="deny")
    assert due(denied, ALLOWED) is None
    assert due(denied, event(7, "user.interrupt")) is None


def test_other_peoples_calls_are_left_alone() -> None:
    assert due(use(1, name="web_search")) is None
    assert due({**use(1), "type": "agent.custom_tool_use"}, {**use(2), "type": "agent.mcp_tool_use"}) is None
    assert due({"type": "agent.tool_use"}, {"id": 5, "type": "agent.tool_use", "name": []}, {}) is None


def interrupted(*events: Event) -> list[bool]:
    calls = Calls({"bash"})
    for one in events:
        calls.apply(one)
    found = []
    while (call := calls.next_due()) is not None:
        found.append(call.interrupted)
        calls.close(call.id)
    return found


def test_an_interrupt_reaches_the_calls_before_it() -> None:
    assert interrupted(use(1), event(2, "user.interrupt"), use(3)) == [True, False]


def test_an_interrupt_of_one_thread_leaves_the_others() -> None:
    child = use(2, session_thread_id="sthr_child")
    assert interrupted(use(1), child, event(3, "user.interrupt", session_thread_id="sthr_child")) == [False, True]
    assert interrupted(use(1), child, event(3, "user.interrupt", session_thread_id="sthr_primary")) == [True, False]
    assert interrupted(use(1), child, event(3, "user.interrupt")) == [True, True]


def test_a_thread_takes_its_calls_with_it() -> None:
    ended = event(3, "session.thread_status_terminated", session_thread_id="sthr_child")
    assert due(use(1, session_thread_id="sthr_child"), ended) is None
    assert due(use(1), ended) == "e1"


@pytest.mark.parametrize(
    ("kinds", "resting"),
    [
        ([("session.status_idle", "end_turn")], True),
        ([("session.status_idle", "requires_action")], False),
        ([("session.status_idle", "end_turn"), ("session.status_running", "")], False),
        ([("session.status_idle", "end_turn"), ("session.usage", "")], True),
        ([("session.status_rescheduled", "")], False),
        ([], False),
    ],
)
def test_rest(kinds: list[tuple[str, str]], resting: bool) -> None:
    calls = Calls({"bash"})
    for number, (kind, reason) in enumerate(kinds):
        calls.apply(event(number, kind, stop_reason={"type": reason}))
    assert calls.resting is resting


def test_input_is_seen_again_when_it_has_been_taken_up() -> None:
    calls = Calls({"bash"})
    waiting = {**event(1, "user.message"), "processed_at": None}
    assert calls.apply(waiting) and not calls.apply(waiting)
    assert calls.apply(event(1, "user.message"))


@pytest.mark.parametrize("kind", ["session.deleted", "session.status_terminated"])
def test_the_end(kind: str) -> None:
    calls = Calls({"bash"})
    calls.apply(event(1, kind))
    assert calls.ended == kind
