"""Cancellation and limits: the caller leaves within a second, and the endpoint sees the connection end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from mango.model.connection import Connection
from mango.model.messages import MessagesModel
from mango.ports import Cancellation, Cancelled, ModelError
from tests.support.messages_server import MessagesServer, Stream, answer_events, text_answer
from tests.unit.model.conversation import ask, user

LONG = answer_events([{"type": "text", "text": str(n)} for n in range(200)])
SILENT = {
    "before the headers": text_answer("x", before_headers=60),
    "before the first event": text_answer("x", before_events=60),
    "between events": Stream(LONG, between_events=0.2),
}


@pytest.fixture(autouse=True, scope="module")
def library() -> None:
    """Imported beforehand, so that the times measured are not those of the import."""
    import anthropic  # noqa: F401


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    reading_ends()


def reading_ends() -> None:
    deadline = time.monotonic() + 5
    while any(thread.name == "model-request" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "the reading thread goes on"
        time.sleep(0.01)


def seconds_until_cancelled(url: str, after: Callable[[], object]) -> float:
    cancellation = Cancellation()
    cancelled: list[float] = []

    def cancel() -> None:
        after()
        cancelled.append(time.monotonic())
        cancellation.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Cancelled):
        MessagesModel(url).request(ask([user("hi")]), cancellation)
    ended = time.monotonic()
    thread.join()
    return ended - cancelled[0]


@pytest.mark.parametrize("stream", SILENT.values(), ids=SILENT.keys())
def test_cancelling_takes_less_than_a_second_and_ends_the_connection(stream: Stream) -> None:
    with MessagesServer([stream]) as server:

        def under_way() -> None:
            server.arrived.wait(10)
            time.sleep(0.3)

        assert seconds_until_cancelled(server.url, under_way) < 1
        reading_ends()  # while the server would still be silent
        if stream.between_events:
            assert server.disconnected.wait(5)


def test_cancelling_while_nothing_answers_the_connection() -> None:
    """A full backlog: the connection is never accepted, and nothing can interrupt connecting."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        port = listener.getsockname()[1]
        try:
            assert seconds_until_cancelled(f"http://127.0.0.1:{port}", lambda: time.sleep(0.3)) < 1
        finally:
            for filler in fillers:
                filler.close()


def test_cancelled_beforehand_makes_no_request() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with MessagesServer() as server, pytest.raises(Cancelled):
        MessagesModel(server.url).request(ask([user("hi")]), cancellation)
    assert server.requests == []


def test_cancelling_from_within_on_text() -> None:
    cancellation = Cancellation()
    with MessagesServer([Stream(LONG)]) as server, pytest.raises(Cancelled):
        MessagesModel(server.url).request(ask([user("hi")]), cancellation, lambda *_: cancellation.cancel())


def test_cancelling_after_the_answer_does_nothing() -> None:
    cancellation = Cancellation()
    with MessagesServer([text_answer("x")]) as server:
        assert MessagesModel(server.url).request(ask([user("hi")]), cancellation).content
    cancellation.cancel()


@pytest.mark.parametrize("stream", SILENT.values(), ids=SILENT.keys())
def test_the_time_limit(stream: Stream) -> None:
    started = time.monotonic()
    with MessagesServer([stream]) as server, pytest.raises(ModelError) as caught:
        try:
            MessagesModel(server.url, time_limit=0.7).request(ask([user("hi")]), Cancellation())
        finally:
            reading_ends()
    assert time.monotonic() - started < 2
    assert (caught.value.kind, caught.value.retryable) == ("model_request_failed_error", True)
    assert caught.value.message == "the model did not finish within 0.7 s"


def test_the_limit_of_silence() -> None:
    with MessagesServer([text_answer("x", before_events=60)]) as server, pytest.raises(ModelError) as caught:
        MessagesModel(server.url, idle_limit=0.3).request(ask([user("hi")]), Cancellation())
    assert (caught.value.kind, caught.value.retryable) == ("model_request_failed_error", True)
    assert "ReadTimeout" in caught.value.message


def test_an_exception_of_the_listener_ends_the_request() -> None:
    class Odd(Exception):
        pass

    def listener(index: int, text: str) -> None:
        raise Odd

    with MessagesServer([Stream(LONG, between_events=0.05)]) as server:
        with pytest.raises(Odd):
            MessagesModel(server.url).request(ask([user("hi")]), Cancellation(), listener)
        assert server.disconnected.wait(5)


def test_what_connects_after_the_cut_is_cut_too() -> None:
    near, far = socket.socketpair()

    class Connected:
        def get_extra_info(self, name: str) -> socket.socket:
            assert name == "socket"
            return near

    class Request:
        extensions: dict[str, object] = {}  # noqa: RUF012

    with near, far:
        connection, request = Connection(), Request()
        connection.watch(request)  # type: ignore[arg-type]
        connection.cut()
        trace = request.extensions["trace"]
        assert callable(trace)
        trace("connection.connect_tcp.complete", {"return_value": Connected()})
        assert far.recv(1) == b""
        connection.cut()
