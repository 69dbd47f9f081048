"""Hands the result of a call in, so that it is counted exactly once or, for a closed call, not at all."""

import random
import threading
import time
from collections.abc import Callable
from enum import Enum

from mango_worker.api import Api
from mango_worker.errors import ApiRefused, ApiUnavailable
from mango_worker.item.feed import read_history
from mango_worker.tools.base import ToolResult, text_result

POST_TIMEOUT = 15.0
_LOST = frozenset({401, 403, 412})
_GONE = frozenset({404, 410})


class Posted(Enum):
    ANSWERED = "answered"  # the call has a result: this one, or one that was there before
    DROPPED = "dropped"  # the API wants none, or none could be delivered in time
    LEASE_LOST = "lease lost"
    SESSION_GONE = "session gone"


class Results:
    """Posts results of one session until it is closed."""

    def __init__(self, api: Api, session_path: str) -> None:
        self._api = api
        self._path = session_path
        self._over = threading.Event()

    def close(self) -> None:
        """Post nothing more, also not what is being tried just now. Any thread may call it."""
        self._over.set()

    def post(self, call_id: str, result: ToolResult, remaining: Callable[[], float]) -> Posted:
        """Post until it is known to have counted; `remaining` tells the seconds that are left for trying."""
        delay = 0.5
        while not self._over.is_set():
            try:
                self._send(call_id, result, remaining())
                return Posted.ANSWERED
            except ApiRefused as refused:
                return self._refused(call_id, refused, remaining)
            except ApiUnavailable as trouble:
                # It may have arrived all the same.
                if self._has_result(call_id, remaining()):
                    return Posted.ANSWERED
                pause = max(delay * random.uniform(0.75, 1.0), trouble.retry_after)  # noqa: S311
                if remaining() <= pause:
                    return Posted.DROPPED
                self._over.wait(pause)
                delay = min(delay * 2, 10.0)
        return Posted.DROPPED

    def _send(self, call_id: str, result: ToolResult, seconds: float) -> None:
        event = {
            "type": "user.tool_result",
            "tool_use_id": call_id,
            "is_error": result.is_error,
            "content": list(result.content),
        }
        timeout = max(0.5, min(POST_TIMEOUT, seconds))
        self._api.post(f"{self._path}/events", body={"events": [event]}, timeout=timeout)

    def _refused(self, call_id: str, refused: ApiRefused, remaining: Callable[[], float]) -> Posted:
        if refused.status in _LOST:
            return Posted.LEASE_LOST
        if refused.status in _GONE:
            return Posted.SESSION_GONE
        if self._has_result(call_id, remaining()):
            return Posted.ANSWERED
        # Either the call is closed, or it is this content that is not wanted (too large, say). In the second case
        # the session would wait for ever, so the reason itself becomes the result; in the first it is refused too.
        reason = text_result(f"the tool ran, but the API did not accept its result: {refused}", True)
        try:
            self._send(call_id, reason, remaining())
        except ApiRefused as again:
            return Posted.LEASE_LOST if again.status in _LOST else Posted.DROPPED
        except ApiUnavailable:
            return Posted.DROPPED
        return Posted.ANSWERED

    def _has_result(self, call_id: str, seconds: float) -> bool:
        try:
            history = read_history(self._api, self._path, timeout=max(0.5, min(POST_TIMEOUT, seconds)))
        except (ApiRefused, ApiUnavailable):
            return False
        return any(
            event.get("tool_use_id") == call_id and str(event.get("type")) in ("user.tool_result", "agent.tool_result")
            for event in history
        )


def monotonic_remaining(deadline: float) -> Callable[[], float]:
    """Seconds until `deadline` (of time.monotonic), as a function."""
    return lambda: deadline - time.monotonic()
