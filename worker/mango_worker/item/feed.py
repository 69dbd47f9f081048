"""Follows a session's events: the stream is opened first, then the whole history is read, so nothing falls between.

The same is done after every reconnection. Whoever receives the events must not mind seeing one twice.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from mango_worker.api import Api, Stream
from mango_worker.errors import ApiRefused, ApiUnavailable
from mango_worker.item.calls import Event

PAGE = 1000
_FIRST_DELAY = 0.5
_MAX_DELAY = 10.0
_STEADY = 5.0  # a stream that lived this long was a good one


class Feed:
    """`deliver` gets each page of history and each streamed event, as lists; `refused` gets the final no, if any."""

    def __init__(
        self,
        api: Api,
        session_path: str,
        deliver: Callable[[list[Event]], None],
        refused: Callable[[ApiRefused], None],
    ) -> None:
        self._api = api
        self._path = session_path
        self._deliver = deliver
        self._refused = refused
        self._over = threading.Event()
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._follow, name="event-feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, bound: float = 2.0) -> None:
        """Stop following; waits at most `bound` seconds for the thread."""
        self._over.set()
        if (stream := self._stream) is not None:
            stream.abort()
        if self._thread.ident is not None:
            self._thread.join(bound)

    def _follow(self) -> None:
        delay = _FIRST_DELAY
        while not self._over.is_set():
            opened = time.monotonic()
            try:
                self._connection()
            except ApiRefused as refused:
                self._refused(refused)
                return
            except ApiUnavailable as trouble:
                delay = max(delay, trouble.retry_after)
            if time.monotonic() - opened >= _STEADY:
                delay = _FIRST_DELAY
            self._over.wait(delay)
            delay = min(delay * 2, _MAX_DELAY)

    def _connection(self) -> None:
        with self._api.stream(f"{self._path}/events/stream") as stream:
            self._stream = stream
            try:
                # Delivered only when complete: with half of it, an answered call could look open.
                self._deliver(read_history(self._api, self._path))
                for message in stream:
                    if self._over.is_set():
                        return
                    if (event := _event(message.event, message.data)) is not None:
                        self._deliver([event])
            finally:
                self._stream = None


def read_history(api: Api, session_path: str, timeout: float = 15.0) -> list[Event]:
    """All events of a session, oldest first. Raises ApiRefused or ApiUnavailable."""
    events: list[Event] = []
    params: dict[str, Any] = {"limit": PAGE, "order": "asc"}
    while True:
        page = api.get(f"{session_path}/events", params=params, timeout=timeout)
        if not isinstance(page, dict) or not isinstance(page.get("data"), list):
            raise ApiUnavailable("a page of events has no data")
        events += [event for event in page["data"] if isinstance(event, dict)]
        following = page.get("next_page")
        if not following:
            return events
        params = {"limit": PAGE, "order": "asc", "page": following}


def _event(name: str, data: str) -> Event | None:
    """The event in a message; the type inside decides, only errors and pings are told by their name."""
    if name == "ping":
        return None
    if name == "error":
        raise ApiUnavailable("the event stream reported an error")
    try:
        event = json.loads(data)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("type"), str) else None
