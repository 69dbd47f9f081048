"""What must hold before a stream begins: who asks, for what, and from where."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from mango.domain import keys
from mango.domain.errors import InvalidRequest, NotFound
from mango.domain.ledger import Cursor
from mango.domain.principal import Principal
from mango.services.context import Context
from mango.services.session_access import meta_key, owned, primary_thread_id
from mango.stream.reading import looked

Authenticate = Callable[[Context, Mapping[str, str]], Principal]
"""Verifies the credential of a request's headers (lower-case names); raises a `MangoError`."""

DELTAS = ("agent.message", "agent.thinking")
MAX_DELTAS = 100
PARAMETERS = ("event_deltas[]", "event_deltas", "after", "beta")

_SESSION = re.compile(r"/v1/sessions/([^/]+)/events/stream/?")
_THREAD = re.compile(r"/v1/sessions/([^/]+)/threads/([^/]+)/stream/?")
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names; without a thread, the primary one."""

    session_id: str
    thread_id: str | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """A stream that may begin: everything after `start` belongs to it. `resumed`: some of that may exist already."""

    principal: Principal
    session_id: str
    thread_id: str
    start: Cursor
    resumed: bool


def target_of(path: str) -> Target | None:
    """What a stream route names, or None for every other path."""
    if match := _SESSION.fullmatch(path):
        return Target(match[1])
    if match := _THREAD.fullmatch(path):
        return Target(match[1], match[2])
    return None


def open_stream(
    ctx: Context, authenticate: Authenticate, target: Target, headers: Mapping[str, str], query: str
) -> Opening:
    """Checks the request and fixes the start point. Reads the store; raises a `MangoError`."""
    principal = authenticate(ctx, headers)
    after = _after(query, headers)
    session_id = target.session_id
    if not _ID.fullmatch(session_id):
        raise NotFound("session was not found")
    thread_id = target.thread_id or primary_thread_id(session_id)
    if not _ID.fullmatch(thread_id):
        raise NotFound("thread was not found")
    meta, thread = ctx.store.get_many([meta_key(session_id), keys.thread(session_id, thread_id)])
    owned(meta, principal, session_id)
    if thread is None:
        raise NotFound(f"thread {thread_id!r} was not found")
    start = _start(after, looked(meta, thread).head)
    return Opening(principal, session_id, thread_id, start, resumed=after is not None)


def _start(after: Cursor | None, head: int) -> Cursor:
    if after is None:
        return Cursor(head + 1, 0)  # behind all of commit `head`, however many events that has
    if after > Cursor(head + 1, 0):
        raise InvalidRequest(f"the cursor {after.text()!r} is not a place in this thread's history")
    return after


def _after(query: str, headers: Mapping[str, str]) -> Cursor | None:
    parameters = parse_qsl(query, keep_blank_values=True)
    if unknown := sorted({name for name, _ in parameters} - set(PARAMETERS)):
        raise InvalidRequest("unknown query parameter", path=unknown[0])
    _check_deltas([value for name, value in parameters if name in ("event_deltas[]", "event_deltas")])
    asked = [value for name, value in parameters if name == "after"]
    # A client that reconnects repeats its first URL; what it has seen since is in the header.
    text = headers.get("last-event-id") or (asked[-1] if asked else "")
    if not text:
        return None
    cursor = Cursor.parse(text)
    if cursor is None:
        raise InvalidRequest("not a cursor of an event stream", path="after")
    return cursor


def _check_deltas(values: list[str]) -> None:
    if len(values) > MAX_DELTAS:
        raise InvalidRequest(f"at most {MAX_DELTAS} values", path="event_deltas")
    for value in values:
        if value not in DELTAS:
            raise InvalidRequest(f"{value[:80]!r} is not one of {', '.join(DELTAS)}", path="event_deltas")
