"""Claiming what the doorbell names, and, now and then, whatever is there: a ring may be lost, doubled or late."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from mango_worker.api import Api
from mango_worker.errors import QueueUnavailable, WorkerError
from mango_worker.supervisor.claims import Backoff, Claims
from mango_worker.supervisor.work import WorkItem, is_id

ASK_EVERY = 180.0
"""Seconds between two polls without a ring."""


@dataclass(frozen=True, slots=True)
class Ring:
    """One message. `work_id` is "" when it names none; `receipt` is what it is deleted by."""

    work_id: str
    receipt: str = field(repr=False)


class Bell(Protocol):
    """Where rings are heard; see `SqsBell`, which raises as it says there."""

    def wait(self, stop: threading.Event) -> Ring | None: ...

    def delete(self, ring: Ring) -> None: ...


class RungClaims(Claims):
    """Waits at the bell instead of at the API. Without a queue that answers it polls the API as others do."""

    def __init__(
        self, api: Api, environment_id: str, bell: Bell, stop: threading.Event, say: Callable[[str], None]
    ) -> None:
        super().__init__(api, environment_id)
        self._bell, self._stop, self._say = bell, stop, say
        self._trouble = Backoff(first=1.0, most=60.0)
        self._listen_at = 0.0
        self._ask_at = 0.0
        self._told_undeleted = False

    def poll(self, block: bool) -> WorkItem | None:
        """The next item, or None. With `block` it waits for a ring, 20 s at least if nothing is heard."""
        if not block:
            return super().poll(block)
        if time.monotonic() >= self._ask_at:
            item = super().poll(block=False)
            if item is not None:
                return item  # there may be more: the next call asks again
            self._ask_at = time.monotonic() + ASK_EVERY
        if time.monotonic() < self._listen_at:
            return super().poll(block)
        try:
            return self._answer()
        except QueueUnavailable as trouble:
            if not self._trouble.in_trouble:
                self._say(f"cannot reach the queue ({trouble}); polling over HTTP until it answers")
            self._listen_at = time.monotonic() + self._trouble.trouble()
            return super().poll(block)

    def _answer(self) -> WorkItem | None:
        """Claims what rings name, until one is ours or nothing rings."""
        while ring := self._bell.wait(self._stop):
            self._listening()
            item = self.claim(ring.work_id) if is_id(ring.work_id) else None
            self._delete(ring)
            if item is not None:
                return item
            if time.monotonic() >= self._ask_at:
                return None
        self._listening()
        return None

    def _listening(self) -> None:
        if self._trouble.in_trouble:
            self._say("the queue answers again")
            self._ask_at = 0.0  # what rang meanwhile may be lost
        self._trouble.fine()

    def _delete(self, ring: Ring) -> None:
        """What is not deleted comes again and is found claimed, so that it is no reason to leave the item."""
        try:
            self._bell.delete(ring)
        except QueueUnavailable:
            return
        except WorkerError as refused:
            if not self._told_undeleted:
                self._say(f"rings cannot be deleted and will come again: {refused}")
            self._told_undeleted = True
