"""Which tool calls of a session are ours to run, worked out from its events. No input or output here.

Events may come in any mixture of history and stream, and more than once: applying one again changes nothing.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]
INTERRUPTED = "interrupted by the user"


@dataclass(slots=True)
class Call:
    """One tool call. `thread` is the child thread it belongs to, None for the primary one."""

    id: str
    name: str
    input: object
    permission: str
    thread: str | None
    interrupted: bool = False


class Calls:
    """The open calls in the order in which they were made, and whether the session rests or has ended."""

    def __init__(self, tools: Container[str]) -> None:
        self._tools = tools
        self._calls: dict[str, Call] = {}
        self._closed: set[str] = set()
        self._verdicts: dict[str, bool] = {}
        self._seen: set[tuple[str, bool]] = set()
        self.resting = False
        self.ended = ""

    def apply(self, event: Event) -> bool:
        """Take one event in; false if it was known."""
        identity = event.get("id")
        if isinstance(identity, str):
            # Input is listed once while it waits and again, with the same id, when it has been taken up.
            key = (identity, event.get("processed_at") is None)
            if key in self._seen:
                return False
            self._seen.add(key)
        handler = _HANDLERS.get(str(event.get("type")))
        if handler is not None:
            handler(self, event)
        return True

    def next_due(self) -> Call | None:
        """The first call that may run now, or must be answered as interrupted."""
        return next((call for call in self._calls.values() if self._due(call)), None)

    def is_open(self, call_id: str) -> bool:
        """Whether nobody has answered the call and its thread still exists."""
        return call_id in self._calls

    def close(self, call_id: str) -> None:
        """The call has been answered, here or elsewhere: never run it (again)."""
        self._closed.add(call_id)
        self._calls.pop(call_id, None)

    def _due(self, call: Call) -> bool:
        if call.interrupted:
            return call.permission != "deny"
        return call.permission == "allow" or (call.permission != "deny" and self._verdicts.get(call.id, False))

    def _used(self, event: Event) -> None:
        identity, name = event.get("id"), event.get("name")
        if not isinstance(identity, str) or not isinstance(name, str) or name not in self._tools:
            return
        if identity in self._closed or identity in self._calls:
            return
        permission = event.get("evaluated_permission") or "allow"
        self._calls[identity] = Call(
            identity, name, event.get("input"), str(permission), event.get("session_thread_id")
        )

    def _answered(self, event: Event) -> None:
        self.close(str(event.get("tool_use_id")))

    def _confirmed(self, event: Event) -> None:
        self._verdicts.setdefault(str(event.get("tool_use_id")), event.get("result") == "allow")

    def _interrupted(self, event: Event) -> None:
        target = event.get("session_thread_id")
        # The primary thread's calls do not name it, so a target that no call names is the primary thread.
        primary = target not in {call.thread for call in self._calls.values() if call.thread}
        for call in self._calls.values():
            if target is None or call.thread == target or (call.thread is None and primary):
                call.interrupted = True

    def _thread_ended(self, event: Event) -> None:
        thread = event.get("session_thread_id")
        for call in [call for call in self._calls.values() if call.thread is not None and call.thread == thread]:
            self.close(call.id)

    def _idle(self, event: Event) -> None:
        reason = event.get("stop_reason")
        self.resting = not (isinstance(reason, dict) and reason.get("type") == "requires_action")

    def _active(self, event: Event) -> None:
        self.resting = False

    def _ended(self, event: Event) -> None:
        self.ended = str(event.get("type"))


_HANDLERS = {
    "agent.tool_use": Calls._used,
    "agent.tool_result": Calls._answered,
    "user.tool_result": Calls._answered,
    "user.tool_confirmation": Calls._confirmed,
    "user.interrupt": Calls._interrupted,
    "session.thread_status_terminated": Calls._thread_ended,
    "session.status_idle": Calls._idle,
    "session.status_running": Calls._active,
    "session.status_rescheduled": Calls._active,
    "session.status_terminated": Calls._ended,
    "session.deleted": Calls._ended,
}
