"""How the example watches a turn."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from coding_agent import observer
from coding_agent.failures import ExampleFailed
from tests.unit.example.example_server import (
    ANCHOR,
    SESSION,
    TURN,
    Json,
    Server,
    Streamed,
    call,
    idle,
    message,
    result,
    said,
)

EVENTS = f"/v1/sessions/{SESSION}/events"
TOLD = ["I run the tests.", '[tool] {"name": "bash", "input": {"command": "true"}}', "They pass."]
LOST = "The stream ended; following the durable history instead."


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "POLL_SECONDS", 0.0)


def page(events: list[Json], following: str | None = None) -> Json:
    return {"data": events, "next_page": following}


def serving(stream: Streamed, *pages: object) -> Server:
    return Server(
        {
            f"GET {EVENTS}/stream": stream,
            f"POST {EVENTS}": {"data": [{**message(), "processed_at": None}]},
            f"GET {EVENTS}?limit=1000": list(pages),
        }
    )


def watched(server: Server) -> list[str]:
    """What a turn on this server prints."""
    told: list[str] = []
    asyncio.run(server.use(lambda client: observer.converse(client, SESSION, "go", told.append)))
    return told


def failure(*events: Json) -> str:
    """Why a turn of these events fails."""
    with pytest.raises(ExampleFailed) as caught:
        watched(serving(Streamed([message(), *events])))
    return str(caught.value)


def test_opens_the_stream_first_and_sends_once() -> None:
    server = serving(Streamed(TURN))
    assert watched(server) == TOLD
    assert server.asked == [f"GET {EVENTS}/stream", f"POST {EVENTS}"]
    assert server.sent == [{"events": [{"type": "user.message", "content": [{"type": "text", "text": "go"}]}]}]


def test_what_comes_before_the_admitted_event_does_not_count() -> None:
    earlier = [said("An earlier turn."), call("sevt_old"), result("sevt_old"), idle("retries_exhausted"), idle()]
    assert watched(serving(Streamed([*earlier, *TURN]))) == TOLD


def test_an_earlier_bash_call_does_not_count() -> None:
    with pytest.raises(ExampleFailed, match="without a bash call"):
        watched(serving(Streamed([call("sevt_old"), message(), result("sevt_old"), idle()])))


@pytest.mark.parametrize("error", [None, httpx2.ReadError("cut"), httpx2.RemoteProtocolError("cut")])
@pytest.mark.parametrize("cut", range(len(TURN)))
def test_a_lost_stream_is_made_good_from_history_without_sending_again(cut: int, error: Exception | None) -> None:
    server = serving(Streamed(TURN[:cut], error), page([said("Long ago."), idle(), *TURN]))
    assert sorted(watched(server)) == sorted([*TOLD, LOST])
    assert server.asked == [f"GET {EVENTS}/stream", f"POST {EVENTS}", f"GET {EVENTS}?limit=1000"]


def test_history_is_read_page_by_page() -> None:
    server = serving(Streamed([]), page(TURN[:3], "two"))
    server._answers[f"GET {EVENTS}?limit=1000&page=two"] = page(TURN[3:5], "three")
    server._answers[f"GET {EVENTS}?limit=1000&page=three"] = page(TURN[5:])
    assert watched(server) == [LOST, *TOLD]
    assert [each for each in server.asked if each.startswith("POST")] == [f"POST {EVENTS}"]


def test_polling_goes_on_until_the_turn_has_ended_also_while_the_server_restarts() -> None:
    queued = {**message(), "processed_at": None}
    server = serving(Streamed([]), page([queued]), 503, page(TURN[:4]), page(TURN))
    assert watched(server) == [LOST, *TOLD]
    assert len(server.asked) == 6


def test_a_session_that_is_gone_ends_the_polling() -> None:
    with pytest.raises(Exception, match="prepared"):
        watched(serving(Streamed([]), 404))


@pytest.mark.parametrize(
    "event",
    [
        call("sevt_x", "book_flight", kind="agent.custom_tool_use"),
        call("sevt_x", "web_fetch"),
        call("sevt_x", "bash", "ask"),
        call("sevt_x", "bash", "deny"),
        said("Nobody knows this call."),
    ],
)
def test_an_action_that_is_not_the_workers_fails(event: Json) -> None:
    assert "not the worker's: sevt_x" in failure(call("sevt_y"), event, idle("requires_action", "sevt_y", "sevt_x"))


@pytest.mark.parametrize("tool", observer.TOOLS)
def test_every_worker_tool_is_waited_for(tool: str) -> None:
    waiting = [call("sevt_y", tool), idle("requires_action", "sevt_y"), result("sevt_y")]
    assert watched(serving(Streamed([message(), *waiting, *TURN[1:]])))[1:] == TOLD


def test_a_turn_needs_a_bash_call_that_succeeds() -> None:
    assert "without a bash call" in failure(idle())
    assert "without a bash call" in failure(call("sevt_y"), result("sevt_y", is_error=True), idle())
    assert "without a bash call" in failure(call("sevt_y", "read"), result("sevt_y"), idle())
    good = [call("sevt_1"), result("sevt_1", is_error=True), call("sevt_2"), result("sevt_2"), idle()]
    assert len(watched(serving(Streamed([message(), *good])))) == 2


@pytest.mark.parametrize("reason", ["retries_exhausted", "budget_reached", "refusal"])
def test_other_ends_of_a_turn_fail(reason: str) -> None:
    assert failure(call("sevt_y"), result("sevt_y"), idle(reason)) == f"the turn ended with {reason}"


@pytest.mark.parametrize("kind", ["session.status_terminated", "session.deleted"])
def test_the_end_of_the_session_fails(kind: str) -> None:
    assert kind in failure({"id": "sevt_end", "type": kind, "processed_at": TURN[0]["processed_at"]})


def test_unknown_events_are_passed_over() -> None:
    strange = {"id": "sevt_new", "type": "session.not_invented_yet", "processed_at": None}
    assert watched(serving(Streamed([message(), strange, *TURN[1:]]))) == TOLD


def test_what_the_agent_writes_cannot_steer_a_terminal() -> None:
    assert watched(serving(Streamed([message(), said("a\x1b[2Jb\nc\td"), *TURN[2:]])))[0] == "a\ufffd[2Jb\nc\td"


def test_the_server_must_say_what_it_admitted() -> None:
    server = serving(Streamed(TURN))
    server._answers[f"POST {EVENTS}"] = {"data": []}
    with pytest.raises(ExampleFailed, match="did not say which event"):
        watched(server)


def test_a_message_whose_fate_is_unknown_is_not_sent_again() -> None:
    server = serving(Streamed(TURN))
    server._answers[f"POST {EVENTS}"] = 500
    with pytest.raises(Exception, match="prepared"):
        watched(server)
    assert server.asked.count(f"POST {EVENTS}") == 1


def test_all_of_the_history_is_saved() -> None:
    server = serving(Streamed([]), page(TURN[:3], "two"))
    server._answers[f"GET {EVENTS}?limit=1000&page=two"] = page(TURN[3:])
    saved = asyncio.run(server.use(lambda client: observer.history(client, SESSION)))
    assert [event["id"] for event in saved] == [event["id"] for event in TURN]
    assert saved[0]["id"] == ANCHOR
