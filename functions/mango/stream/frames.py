"""What goes over the wire: events as server-sent event frames."""

from __future__ import annotations

from typing import NamedTuple

from mango.domain.ledger import Commit, Cursor, Event, dump_json
from mango.domain.times import rfc3339

KEEP_ALIVE = b": keep-alive\n\n"

_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""No line ends to SSE, but to clients that split text by lines. In JSON they only occur within strings."""


class Frame(NamedTuple):
    """An encoded event and the cursor that points behind it."""

    cursor: Cursor
    data: bytes


def commit_frames(commit: Commit) -> list[Frame]:
    """The events of a commit; encoded once, however many subscribers get them."""
    return [Frame(cursor, _encode(event, cursor)) for cursor, event in commit.entries()]


def opening_frame(cursor: Cursor) -> bytes:
    """First bytes of a stream: an id without an event, so that a client which is cut off before the first event
    resumes where it began. No client dispatches a frame without data."""
    return f": open\nid: {cursor.text()}\n\n".encode()


def deleted_frame(event_id: str, at: int) -> bytes:
    """The last frame of a deleted session's stream. In no history, so it has no cursor."""
    return _encode({"type": "session.deleted", "id": event_id, "processed_at": rfc3339(at)}, None)


def _encode(event: Event, cursor: Cursor | None) -> bytes:
    place = f"id: {cursor.text()}\n" if cursor else ""
    return f"{place}event: {event['type']}\ndata: {dump_json(event).translate(_LINE_ENDS)}\n\n".encode()
