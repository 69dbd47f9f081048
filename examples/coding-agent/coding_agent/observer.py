"""Watches one turn: sends the message once, then follows what becomes of it until the turn has ended.

The stream is opened before the message is sent, and read from the event that the server admitted for it. If the stream
breaks, the same turn is read from durable history instead, once a second. The message is never sent again: the server
said that it has it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import anthropic
import httpx2  # the HTTP library of `anthropic`, which lets its errors through while a stream is read
from anthropic import AsyncAnthropic
from anthropic.types.beta.sessions import BetaManagedAgentsSessionEvent, BetaManagedAgentsStreamSessionEvents
from anthropic.types.beta.sessions.beta_managed_agents_session_status_idle_event import StopReason

from coding_agent.console import plain, say
from coding_agent.failures import ExampleFailed

Event: TypeAlias = BetaManagedAgentsStreamSessionEvents | BetaManagedAgentsSessionEvent

TOOLS = ("bash", "read", "write", "edit", "glob", "grep")
POLL_SECONDS = 1.0
# The server sends something at least every 15 s, so this much silence means that the connection is dead.
STREAM_SILENCE_SECONDS = 60.0
PAGE = 1000


class Turn:
    """What is known of a turn, event by event. Takes each event once, however often it is told of it.

    Args:
        anchor: id of the input event with which the turn begins; what comes before is not looked at.
        tell: gets a line for every tool call and every text of the agent.
    """

    def __init__(self, anchor: str, tell: Callable[[str], None] = say) -> None:
        self.done = False
        self._anchor, self._tell = anchor, tell
        self._reached = False
        self._seen: set[str] = set()
        self._calls: dict[str, str] = {}
        self._bash_succeeded = False

    def reread(self) -> None:
        """What comes now is history from its beginning, and so from before this turn."""
        self._reached = False

    def take(self, event: Event) -> None:
        """Raises `ExampleFailed` if the turn cannot end well any more."""
        if self.done or event.type == "event_start" or event.type == "event_delta":
            return
        self._reached = self._reached or event.id == self._anchor
        if not self._reached or event.id in self._seen:
            return
        self._seen.add(event.id)
        self._notice(event)
        if event.type == "session.status_idle":
            self._idle(event.stop_reason)
        elif event.type == "session.status_terminated" or event.type == "session.deleted":
            raise ExampleFailed(f"the session ended in the middle of the turn ({event.type})")

    def _notice(self, event: Event) -> None:
        if event.type == "agent.tool_use":
            self._tell(f"[tool] {json.dumps({'name': event.name, 'input': event.input})}")
            if event.name in TOOLS and event.evaluated_permission == "allow":
                self._calls[event.id] = event.name
        elif event.type == "agent.message":
            self._tell(plain("\n".join(block.text for block in event.content if block.type == "text")))
        elif event.type == "user.tool_result":
            self._bash_succeeded |= self._calls.get(event.tool_use_id) == "bash" and not event.is_error
        elif event.type == "session.error":
            self._tell(plain(f"[error] {event.error.message}"))

    def _idle(self, reason: StopReason) -> None:
        if reason.type == "requires_action":
            # The worker's own calls also stop the turn until their results are in. Anything else would wait for us.
            foreign = [each for each in reason.event_ids if each not in self._calls]
            if foreign:
                raise ExampleFailed(f"the session asks for an action that is not the worker's: {', '.join(foreign)}")
        elif reason.type != "end_turn":
            raise ExampleFailed(f"the turn ended with {reason.type}")
        elif not self._bash_succeeded:
            raise ExampleFailed("the turn ended without a bash call that succeeded, so nothing was tested")
        else:
            self.done = True


async def converse(client: AsyncAnthropic, session_id: str, text: str, tell: Callable[[str], None] = say) -> None:
    """Sends `text` and returns when its turn has ended well. Raises `ExampleFailed`."""
    events = client.beta.sessions.events
    async with await events.stream(session_id, timeout=STREAM_SILENCE_SECONDS) as stream:
        # Not retried by the library either: a second message would be a second turn.
        sending = client.with_options(max_retries=0).beta.sessions.events
        admitted = await sending.send(
            session_id, events=[{"type": "user.message", "content": [{"type": "text", "text": text}]}]
        )
        turn = Turn(_anchor(admitted.data), tell)
        await _follow_stream(turn, stream)
    if not turn.done:
        tell("The stream ended; following the durable history instead.")
        await _follow_history(turn, client, session_id)


def _anchor(admitted: object) -> str:
    if not isinstance(admitted, list) or len(admitted) != 1:
        raise ExampleFailed("the server did not say which event it admitted for the message")
    return str(admitted[0].id)


async def _follow_stream(turn: Turn, stream: AsyncIterator[Event]) -> None:
    """Until the turn is done or the stream ends, whatever ends it."""
    try:
        async for event in stream:
            turn.take(event)
            if turn.done:
                return
    except (anthropic.APIError, httpx2.HTTPError):
        return  # the history knows all that this stream would have said


async def _follow_history(turn: Turn, client: AsyncAnthropic, session_id: str) -> None:
    while True:
        turn.reread()
        try:
            async for event in client.beta.sessions.events.list(session_id, limit=PAGE):
                turn.take(event)
        except (anthropic.APIConnectionError, anthropic.InternalServerError, anthropic.RateLimitError):
            pass  # it may be restarting, and the overall time limit ends this
        if turn.done:
            return
        await asyncio.sleep(POLL_SECONDS)


async def history(client: AsyncAnthropic, session_id: str) -> list[dict[str, object]]:
    """All events of a session, oldest first, as JSON objects."""
    return [event.to_dict(mode="json") async for event in client.beta.sessions.events.list(session_id, limit=PAGE)]
