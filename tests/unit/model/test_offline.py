from __future__ import annotations

import threading
import time

import pytest

from mango.model.answers import pieces
from mango.model.offline import OfflineModel
from mango.ports import Cancellation, Cancelled
from tests.unit.model.conversation import BASH, ask, result, said, user, uses

CUSTOM = {**BASH, "name": "lookup"}


def test_calls_the_first_tool_once_then_echoes() -> None:
    model = OfflineModel(0)
    first = model.request(ask([user("hi there")], [CUSTOM, BASH]), Cancellation())
    (call,) = uses(first)
    assert (call["name"], call["input"], first.stop_reason) == ("lookup", {}, "tool_use")
    messages = [user("hi there"), {"role": "assistant", "content": first.content}, user(result(call["id"], "ok"))]
    second = model.request(ask(messages, [CUSTOM, BASH]), Cancellation())
    assert (said(second), second.stop_reason) == ("echo: hi there", "end_turn")


def test_echoes_at_once_without_tools() -> None:
    answer = OfflineModel(0).request(ask([user("one"), user("two", "three")]), Cancellation())
    assert said(answer) == "echo: two\nthree"
    assert said(OfflineModel(0).request(ask([{"role": "user", "content": "plain"}]), Cancellation())) == "echo: plain"


def test_same_request_same_answer_and_ids_differ_by_place() -> None:
    model = OfflineModel(0)
    request = ask([user("a")], [BASH])
    assert model.request(request, Cancellation()) == model.request(request, Cancellation())
    ids = {
        uses(model.request(ask(messages, [BASH], thread_id=thread), Cancellation()))[0]["id"]
        for messages in ([user("a")], [user("a"), user("b")])
        for thread in ("sthr_1", "sthr_2")
    }
    assert len(ids) == 4


@pytest.mark.parametrize("text", ["", "hello", "a b", " two  spaces ", "äö", "line\nbreak"])
def test_streams_text_in_pieces(text: str) -> None:
    heard: list[tuple[int, str]] = []
    OfflineModel(0).request(ask([user(text)]), Cancellation(), lambda index, piece: heard.append((index, piece)))
    assert len(heard) >= 2
    assert "".join(piece for _, piece in heard) == f"echo: {text}"
    assert {index for index, _ in heard} == {0}


@pytest.mark.parametrize("text", ["", "x", "xy", "x ", " ", "  ", "a b c"])
def test_pieces_make_up_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text
    assert all(pieces(text))
    assert len(pieces(text)) >= min(2, len(text))


def test_cancellation_ends_the_thinking() -> None:
    cancellation = Cancellation()
    threading.Timer(0.1, cancellation.cancel).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        OfflineModel(30).request(ask([user("a")]), cancellation)
    assert time.monotonic() - started < 1


def test_cancellation_ends_the_streaming() -> None:
    cancellation = Cancellation()
    with pytest.raises(Cancelled):
        OfflineModel(0).request(ask([user("a b c")]), cancellation, lambda index, piece: cancellation.cancel())
