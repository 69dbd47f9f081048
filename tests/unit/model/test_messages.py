from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest

from mango.model.messages import MessagesModel
from mango.ports import Cancellation, Json, ModelAnswer, ModelError, ModelRequest, ModelUsage
from tests.support.messages_server import (
    Answer,
    Failure,
    MessagesServer,
    Recorded,
    Stream,
    answer_events,
    text_answer,
    tool_answer,
)
from tests.unit.model.conversation import BASH, ask, result, said, user, uses

KEY = "sk-test-0123456789abcdef"
THINKING: Json = {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmF0dXJl+/="}
REDACTED: Json = {"type": "redacted_thinking", "data": "b3BhcXVl"}
TEXT: Json = {"type": "text", "text": "héllo wörld 🥭", "citations": None}
CALL: Json = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls", "n": 1.5, "deep": [{}]}}
EMPTY_CALL: Json = {"type": "tool_use", "id": "toolu_2", "name": "bash", "input": {}}
FUTURE: Json = {"type": "future_block", "payload": {"x": [1, None]}}
RICH = answer_events([THINKING, REDACTED, TEXT, CALL, EMPTY_CALL, FUTURE], "tool_use")


def call(script: Any, request: ModelRequest | None = None, **options: Any) -> tuple[ModelAnswer, Recorded]:
    with MessagesServer(script) as server:
        client = MessagesModel(server.url, KEY, **options)
        answer = client.request(request or ask([user("hi")]), Cancellation())
        return answer, server.requests[0]


def failure(answer: Answer, **options: Any) -> ModelError:
    heard: list[str] = []
    with MessagesServer([answer]) as server, pytest.raises(ModelError) as caught:
        client = MessagesModel(server.url, KEY, **options)
        client.request(ask([user("hi")]), Cancellation(), lambda index, text: heard.append(text))
    assert len(server.requests) == 1, "the library retried"
    assert len(caught.value.message) <= 500
    assert KEY not in caught.value.message
    return caught.value


def test_content_is_kept_verbatim() -> None:
    answer, _ = call([Stream(RICH)])
    assert answer.content == [THINKING, REDACTED, TEXT, CALL, EMPTY_CALL, FUTURE]
    assert answer.stop_reason == "tool_use"
    assert answer.usage == ModelUsage(input_tokens=7, output_tokens=11)


def test_an_answer_can_be_replayed() -> None:
    answer, _ = call([Stream(RICH)])
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    messages = [user(image), {"role": "assistant", "content": answer.content}, user(result("toolu_1", "ok"), "", "x")]
    before = copy.deepcopy(messages)
    _, recorded = call([text_answer("done")], ask(messages))
    assert recorded.body["messages"][1] == {"role": "assistant", "content": answer.content}
    assert recorded.body["messages"][0]["content"][0]["source"] == image["source"]
    assert messages == before


def test_text_is_heard_as_it_comes_with_the_blocks_index() -> None:
    heard: list[tuple[int, str]] = []
    with MessagesServer([Stream(RICH)]) as server:
        MessagesModel(server.url, KEY).request(ask([user("hi")]), Cancellation(), lambda *piece: heard.append(piece))
    assert {index for index, _ in heard} == {2}
    assert len(heard) == 2
    assert "".join(text for _, text in heard) == TEXT["text"]


def test_usage_and_stop_details() -> None:
    usage = {"cache_creation_input_tokens": 3, "cache_read_input_tokens": 5, "service_tier": "standard"}
    events = answer_events([], "refusal", usage, stop_details={"type": "refusal", "category": "x"})
    answer, _ = call([Stream(events)])
    assert answer.usage == ModelUsage(7, 11, 3, 5)
    assert answer.stop_details == {"type": "refusal", "category": "x"}
    assert answer.content == []


def test_the_request() -> None:
    request = ask([user("hi")], [BASH], system="Be brief.", max_tokens=99)
    _, recorded = call([text_answer("x")], request)
    mark = {"cache_control": {"type": "ephemeral"}}
    assert recorded.path == "/v1/messages"
    assert recorded.body == {
        "model": "m",
        "max_tokens": 99,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", **mark}],
        "tools": [BASH],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", **mark}]}],
    }
    assert recorded.headers["x-api-key"] == KEY
    assert "authorization" not in recorded.headers
    assert recorded.headers["anthropic-version"] == "2023-06-01"
    assert recorded.headers["accept"] == "text/event-stream"
    assert "anthropic-beta" not in recorded.headers


def test_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ambient-key")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "ambient-token")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    _, bearer = call([text_answer("x")], auth="authorization-bearer")
    assert bearer.headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in bearer.headers
    with MessagesServer([text_answer("x")]) as server:
        MessagesModel(f"{server.url}/gateway/").request(ask([user("hi")]), Cancellation())
    assert server.requests[0].path == "/gateway/v1/messages"
    assert not {"authorization", "x-api-key"} & server.requests[0].headers.keys()
    assert "ambient" not in json.dumps(server.requests[0].headers)


def test_name_tells_no_password() -> None:
    assert MessagesModel("http://me:pw@host:80/x?k=v", KEY).name == "messages at http://host:80/x"


EVERY_CUT = [
    pytest.param(index, inside, clean, id=f"{index}{'-inside' * inside}{'-clean' * clean}")
    for index in range(len(RICH))
    for inside in (False, True)
    for clean in (False, True)
]


@pytest.mark.parametrize(("index", "inside", "clean"), EVERY_CUT)
def test_a_cut_anywhere_is_a_retryable_error(index: int, inside: bool, clean: bool) -> None:
    error = failure(Stream(RICH, cut_before=index, cut_inside=inside, clean_cut=clean))
    assert (error.kind, error.retryable) == ("model_request_failed_error", True)


def test_a_cut_after_the_end_is_none() -> None:
    answer, _ = call([Stream(RICH, cut_before=len(RICH))])
    assert len(answer.content) == 6


def raw(kind: str, data: str) -> bytes:
    return f"event: {kind}\ndata: {data}\n\n".encode()


MALFORMED: dict[str, Sequence[Json | bytes]] = {
    "no json": [RICH[0], raw("content_block_start", "{half")],
    "no object": [raw("message_start", "[1]")],
    "not utf-8": [RICH[0], b"event: content_block_start\ndata: \xff\xfe\n\n"],
    "null": [raw("message_start", "null")],
    "no start": RICH[2:],
    "two starts": [RICH[0], *RICH],
    "delta without block": [RICH[0], {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}}],
    "stop without block": [RICH[0], {"type": "content_block_stop", "index": 0}],
    "block left open": [*answer_events([TEXT])[:3], *answer_events([])[2:]],
    "wrong index": [RICH[0], {"type": "content_block_start", "index": 1, "content_block": TEXT}],
    "block in block": [RICH[0], *2 * [{"type": "content_block_start", "index": 0, "content_block": TEXT}]],
    "no block": [RICH[0], {"type": "content_block_start", "index": 0}],
    "unknown delta": [*answer_events([TEXT])[:3], {"type": "content_block_delta", "index": 0, "delta": {"type": "x"}}],
    "no stop reason": [*answer_events([TEXT])[:-2], {"type": "message_stop"}],
    "null stop reason": answer_events([TEXT], None),
    "nothing": [],
    "nameless tool": answer_events([{"type": "tool_use", "id": "toolu_1", "input": {}}], "tool_use"),
    "lone surrogate": answer_events([{"type": "text", "text": "\ud800"}]),
}


@pytest.mark.parametrize("events", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_streams_are_retryable_errors(events: Sequence[Json | bytes]) -> None:
    error = failure(Stream(events))
    assert (error.kind, error.retryable) == ("model_request_failed_error", True)


@pytest.mark.parametrize(
    "text", ['{"command": "ls"', "[1]", '"x"', '{"n": NaN}', "nonsense", "[" * 5000, '{"a": "\\ud800"}']
)
def test_malformed_tool_input_is_a_retryable_error(text: str) -> None:
    events = answer_events([EMPTY_CALL], "tool_use")
    events[3]["delta"]["partial_json"] = text
    error = failure(Stream(events))
    assert (error.kind, error.retryable) == ("model_request_failed_error", True)


def test_an_answer_too_long_is_refused() -> None:
    error = failure(text_answer("x" * (4 * 1024 * 1024 + 1)))
    assert "4 MiB" in error.message


def test_unknown_events_are_skipped_and_tool_input_may_start_in_the_block() -> None:
    events = answer_events([{**EMPTY_CALL, "type": "tool_use"}], "tool_use")
    events[2]["content_block"]["input"] = {"given": True}
    events.insert(3, {"type": "something_new", "x": 1})
    answer, _ = call([Stream(events)])
    assert uses(answer)[0]["input"] == {"given": True}


def test_citations_are_kept() -> None:
    events = answer_events([{"type": "text", "text": "quote", "citations": []}])
    citation = {"type": "char_location", "cited_text": "q"}
    events.insert(
        4, {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": citation}}
    )
    answer, _ = call([Stream(events)])
    assert answer.content == [{"type": "text", "text": "quote", "citations": [citation]}]


@pytest.mark.parametrize(
    ("answer", "kind", "retryable"),
    [
        (Failure(429, "rate_limit_error", retry_after="7"), "model_rate_limited_error", True),
        (Failure(529, "overloaded_error"), "model_overloaded_error", True),
        (Failure(500), "model_request_failed_error", True),
        (Failure(400, "invalid_request_error", "prompt is too long"), "model_request_failed_error", False),
        (Failure(401, "authentication_error", f"bad key {KEY}"), "model_request_failed_error", False),
        (Failure(402, "billing_error"), "billing_error", False),
        (Failure(413, "request_too_large"), "model_request_failed_error", False),
        (Failure(502, body=b"<html>" + b"x" * 9000), "model_request_failed_error", True),
        (Failure(302, headers={"location": "http://127.0.0.1:9/"}), "model_request_failed_error", False),
        (Failure(200, body=b"{}"), "model_request_failed_error", True),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Failure) else None,
)
def test_errors_of_the_endpoint(answer: Failure, kind: str, retryable: bool) -> None:
    error = failure(answer)
    assert (error.kind, error.retryable) == (kind, retryable)
    if answer.retry_after:
        assert error.retry_after == 7
    if answer.body is None and answer.status == 400:
        assert error.message == "the model endpoint answered 400: invalid_request_error: prompt is too long"


def test_an_error_inside_the_stream() -> None:
    event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    error = failure(Stream([*RICH[:4], event]))
    assert (error.kind, error.retryable) == ("model_overloaded_error", True)
    assert error.message == "the model endpoint broke off: overloaded_error: Overloaded"


def test_nobody_listens() -> None:
    with pytest.raises(ModelError) as caught:
        MessagesModel("http://u:secretpw@127.0.0.1:9", KEY).request(ask([user("hi")]), Cancellation())
    assert (caught.value.kind, caught.value.retryable) == ("model_request_failed_error", True)
    assert "secretpw" not in caught.value.message


def test_text_that_cannot_be_sent_is_no_reason_to_retry() -> None:
    with MessagesServer() as server, pytest.raises(ModelError) as caught:
        MessagesModel(server.url, KEY).request(ask([user("\ud800")]), Cancellation())
    assert not caught.value.retryable
    assert server.requests == []


def test_requests_in_parallel_do_not_mix(messages_server: MessagesServer) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def echo(recorded: Recorded) -> Answer:
        return text_answer(recorded.body["messages"][0]["content"][0]["text"], between_events=0.01)

    messages_server.play(echo)
    client = MessagesModel(messages_server.url, KEY)
    with ThreadPoolExecutor(8) as pool:
        texts = [f"number {n}" for n in range(40)]
        answers = list(pool.map(lambda text: client.request(ask([user(text)]), Cancellation()), texts))
    assert [said(answer) for answer in answers] == texts


def test_a_tool_answer_of_the_support_server() -> None:
    answer, _ = call([tool_answer("bash", {"command": "ls"})])
    assert uses(answer) == [{"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}}]
