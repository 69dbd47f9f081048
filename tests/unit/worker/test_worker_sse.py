"""The event stream reader."""

import pytest

from mango_worker.sse import Message, messages

STREAM = (
    b": comment\n\n"
    b'event: session.status_running\ndata: {"a":\ndata: 1}\nid: 7\n\n'
    b"data:no blank\r\n\r\n"
    b"event: nothing\n\n"
    b"retry: 5\rdata: old line ends\r\r"
    + "data: \u2028\u0085 are no line ends\n\n".encode()
    + b"data: never finished\n"
)
EXPECTED = [
    Message("session.status_running", '{"a":\n1}', "7"),
    Message("message", "no blank", "7"),
    Message("message", "old line ends", "7"),
    Message("message", "\u2028\u0085 are no line ends", "7"),
]


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_the_same_messages_wherever_the_bytes_are_cut(cut: int) -> None:
    assert list(messages([STREAM[:cut], b"", STREAM[cut:]])) == EXPECTED


def test_byte_by_byte() -> None:
    assert list(messages(bytes([one]) for one in STREAM)) == EXPECTED


def test_a_long_line_is_read_in_linear_time() -> None:
    chunk = b"x" * 65_536
    (message,) = messages([b"data: ", *([chunk] * 400), b"\n\n"])
    assert len(message.data) == 400 * 65_536
