"""Server-sent events, read from bytes.

Lines end with LF, CRLF or CR and nothing else: JSON may hold U+2028 or U+0085 unescaped, which general line
splitters would cut at.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One event as sent: `event` is "message" when the sender named none, `id` the last id seen."""

    event: str
    data: str
    id: str


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split a byte stream into lines without their ends. An unfinished last line is dropped."""
    pending = bytearray()
    skip_lf = False
    for chunk in chunks:
        if skip_lf and chunk:
            chunk = chunk[1:] if chunk[:1] == b"\n" else chunk
            skip_lf = False
        # What was already there holds no line end: a long line is searched once, not once a chunk.
        start, search = 0, len(pending)
        pending += chunk
        while (end := _line_end(pending, search)) >= 0:
            yield bytes(pending[start:end])
            start = end + 1
            if pending[end] == 0x0D:
                if start == len(pending):
                    skip_lf = True
                elif pending[start] == 0x0A:
                    start += 1
            search = start
        del pending[:start]


def _line_end(buffer: bytearray, start: int) -> int:
    lf = buffer.find(b"\n", start)
    cr = buffer.find(b"\r", start, lf if lf >= 0 else len(buffer))
    return cr if cr >= 0 else lf


def messages(chunks: Iterable[bytes]) -> Iterator[Message]:
    """Parse a byte stream. Comments are ignored; a message that the stream cuts short is never delivered."""
    event, last_id = "", ""
    data: list[str] = []
    for raw in lines(chunks):
        if not raw:
            if data:
                yield Message(event or "message", "\n".join(data), last_id)
            event, data = "", []
            continue
        name, _, value = raw.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event = value
        elif name == "data":
            data.append(value)
        elif name == "id":
            last_id = value
