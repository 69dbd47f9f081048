"""Claiming work: poll, acknowledge, give back."""

import threading
import time
from collections.abc import Mapping
from enum import Enum

from mango_worker.api import Api
from mango_worker.credential import session_token
from mango_worker.errors import ApiRefused, ApiUnavailable, CredentialError
from mango_worker.supervisor.work import WorkItem, parse_work

BLOCK_MS = 999
RECLAIM_MS = 30_000
ACK_ATTEMPTS = 5


class Ack(Enum):
    OURS = "acknowledged"
    GONE = "claimed by somebody else"
    UNKNOWN = "no answer"


class Claims:
    """Uses the environment's key, which is good for polling and acknowledging only."""

    def __init__(self, api: Api, environment_id: str) -> None:
        self._api = api
        self._environment = environment_id

    def poll(self, block: bool) -> WorkItem | None:
        """The next item, or None. With `block` the API may hold the request for a second."""
        params: dict[str, int | str] = {"reclaim_older_than_ms": RECLAIM_MS}
        if block:
            params["block_ms"] = BLOCK_MS
        return self._ask(params)

    def claim(self, work_id: str) -> WorkItem | None:
        """This item, or None when it is not there to be had, or not any more."""
        return self._ask({"reclaim_older_than_ms": RECLAIM_MS, "work_id": work_id})

    def _ask(self, params: Mapping[str, int | str]) -> WorkItem | None:
        answer = self._api.get(f"/v1/environments/{self._environment}/work/poll", params=params)
        return None if not answer else parse_work(answer, self._environment)

    def acknowledge(self, item: WorkItem, stop: threading.Event) -> Ack:
        """Make the claim firm. Repeating an acknowledgement is harmless, so a lost answer is asked for again."""
        delay = 0.25
        for _ in range(ACK_ATTEMPTS):
            try:
                self._api.post(f"{item.path}/ack", timeout=5.0)
                return Ack.OURS
            except ApiRefused as refused:
                if refused.status in (401, 403):
                    raise
                return Ack.GONE
            except ApiUnavailable as trouble:
                if stop.wait(max(delay, trouble.retry_after)):
                    break
                delay *= 2
        return Ack.UNKNOWN

    def give_back(self, item: WorkItem) -> None:
        """Stop an item that will not be run, by its own credential; the API queues a successor if calls are open.

        Failure is harmless: the item is handed out again when its time runs out.
        """
        try:
            api = Api(self._api.base_url, session_token(item.secret))
        except CredentialError:
            return
        try:
            self._api.post(f"{item.path}/ack", timeout=5.0)
            api.post(f"{item.path}/stop", body={"force": True}, timeout=5.0)
        except (ApiRefused, ApiUnavailable):
            return
        finally:
            api.close()


class Backoff:
    """Delays that double from a quarter of a second to five seconds, and whether trouble is new."""

    def __init__(self, first: float = 0.25, most: float = 5.0) -> None:
        self._first, self._most = first, most
        self._next = first
        self.in_trouble = False

    def trouble(self, at_least: float = 0.0) -> float:
        """Seconds to wait after another failure."""
        delay, self._next = self._next, min(self._next * 2, self._most)
        self.in_trouble = True
        return max(delay, at_least)

    def fine(self) -> None:
        self._next = self._first
        self.in_trouble = False


class Pace:
    """How long to wait after an empty poll: not at all if the API held the request, else a second."""

    def __init__(self) -> None:
        self._asked = time.monotonic()

    def asking(self) -> None:
        self._asked = time.monotonic()

    def pause(self) -> float:
        return 0.0 if time.monotonic() - self._asked >= BLOCK_MS / 2000 else 1.0
