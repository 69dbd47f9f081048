"""A whole deployment in memory, driven step by step: for tests of behaviour that need no process and no network."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mango.domain import keys
from mango.domain.principal import Credential, Principal
from mango.domain.thread import Thread, read_thread
from mango.domain.wire.agents import AgentCreate, AgentListQuery
from mango.domain.wire.environments import EnvironmentCreate
from mango.domain.wire.events import EventListQuery, EventSend
from mango.domain.wire.sessions import SessionCreate
from mango.domain.wire.work import HeartbeatQuery, PollQuery, StopBody
from mango.memory import ManualClock, MemoryBlobs, MemoryDoorbell, MemoryStore, RecordingOrchestrator, SeededIds
from mango.memory.faults import Faults
from mango.ports import Cancellation, ModelAnswer, ModelError, ModelRequest
from mango.services import agents, environments, event_list, events, sessions, work, work_token
from mango.services.context import Context, Limits
from mango.services.readings import Recent
from mango.services.session_access import primary_thread_id
from mango.turn.context import TurnContext
from mango.turn.round import run_round
from mango.turn.sweep import SweepReport, sweep

Json = dict[str, Any]
Reply = ModelAnswer | ModelError | Callable[[ModelRequest, Cancellation], ModelAnswer]

WORKSPACE = Principal(Credential.WORKSPACE, "wrkspc_test", "apikey_test")
SIX_TOOLS: Json = {"type": "agent_toolset_20260401"}


def text(words: str, stop_reason: str = "end_turn") -> ModelAnswer:
    return ModelAnswer([{"type": "text", "text": words}], stop_reason)


def tools(*calls: tuple[str, Json], words: str = "") -> ModelAnswer:
    """An answer that calls tools by name and input; ids are made from the position."""
    content: list[Json] = [{"type": "text", "text": words}] if words else []
    content += [
        {"type": "tool_use", "id": f"toolu_{n}_{name}", "name": name, "input": given}
        for n, (name, given) in enumerate(calls)
    ]
    return ModelAnswer(content, "tool_use")


class RepliesModel:
    """A model that gives prepared replies in order and remembers the requests."""

    name = "replies"

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.requests: list[ModelRequest] = []

    def request(
        self,
        request: ModelRequest,
        cancellation: Cancellation,
        on_text: Callable[[int, str], None] | None = None,
    ) -> ModelAnswer:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, ModelError):
            raise reply
        return reply if isinstance(reply, ModelAnswer) else reply(request, cancellation)


class World:
    """Ports in memory, one agent and environment, and the verbs of a story."""

    def __init__(
        self, seed: int = 0, limits: Limits | None = None, faults: Faults | None = None, remember: int = 0
    ) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(faults)
        self.orchestrator = RecordingOrchestrator()
        self.doorbell = MemoryDoorbell()
        self.ctx = Context(
            store=self.store,
            blobs=MemoryBlobs(),
            doorbell=self.doorbell,
            orchestrator=self.orchestrator,
            clock=self.clock,
            ids=SeededIds(seed),
            limits=limits or Limits(look_every=0.01),
            recent=Recent(remember),
        )
        self.model = RepliesModel()
        self.turn = TurnContext(self.ctx, self.model)
        self.waits: list[tuple[str, str, str, str]] = []
        """Executions in a back-off: session, thread, execution, retry_at."""

    # -- set-up
    def session(self, *messages: str, tools: Sequence[Json] = (SIX_TOOLS,)) -> str:
        agent = agents.create(
            self.ctx, WORKSPACE, AgentCreate.parse({"name": "Ada", "model": "test-model", "tools": list(tools)})
        )
        environment = environments.create(self.ctx, WORKSPACE, EnvironmentCreate.parse({"name": "Here"}))
        self.environment_id: str = environment["id"]
        body: Json = {"agent": agent["id"], "environment_id": environment["id"]}
        if messages:
            body["initial_events"] = [message(words) for words in messages]
        created = sessions.create(self.ctx, WORKSPACE, SessionCreate.parse(body))
        session_id: str = created["id"]
        return session_id

    def another_session(self, environment_id: str) -> str:
        """In an environment that is there already, of the latest agent."""
        agent_id = agents.list_page(self.ctx, WORKSPACE, AgentListQuery(limit=1))["data"][0]["id"]
        body = {"agent": agent_id, "environment_id": environment_id}
        session_id: str = sessions.create(self.ctx, WORKSPACE, SessionCreate.parse(body))["id"]
        return session_id

    # -- clients
    def send(self, session_id: str, *given: Json, principal: Principal = WORKSPACE) -> list[Json]:
        sent: list[Json] = events.send(self.ctx, principal, session_id, EventSend.parse({"events": list(given)}))[
            "data"
        ]
        return sent

    def say(self, session_id: str, *words: str) -> list[Json]:
        return self.send(session_id, *(message(one) for one in words))

    def history(self, session_id: str, **query: Any) -> list[Json]:
        page = event_list.list_page(self.ctx, WORKSPACE, session_id, EventListQuery(limit=1000, **query))
        data: list[Json] = page["data"]
        return data

    def types(self, session_id: str) -> list[str]:
        """The event types in order, without those that stand beside every status (thread status, usage)."""
        hidden = ("session.thread_status", "session.usage")
        return [e["type"] for e in self.history(session_id) if not e["type"].startswith(hidden)]

    def open_calls(self, session_id: str) -> list[str]:
        """Ids of the last idle's blocking events."""
        idle = [e for e in self.history(session_id) if e["type"] == "session.status_idle"][-1]
        ids: list[str] = idle["stop_reason"].get("event_ids", [])
        return ids

    def thread(self, session_id: str) -> Thread:
        item = self.store.get(keys.thread(session_id, primary_thread_id(session_id)))
        assert item is not None
        return read_thread(item)

    # -- the machinery
    def drive(self, *replies: Reply) -> None:
        """Gives the model these replies and runs every execution that was started until all ended or wait."""
        self.model.replies += replies
        while starts := self.orchestrator.take():
            for start in starts:
                self.execute(start.session_id, start.thread_id, f"{start.thread_id}-{start.wake}")

    def execute(self, session_id: str, thread_id: str, execution: str) -> None:
        answer = run_round(self.turn, session_id, thread_id, execution)
        while answer["next"] == "round":
            answer = run_round(self.turn, session_id, thread_id, execution)
        if answer["next"] == "backoff":
            self.waits.append((session_id, thread_id, execution, answer["retry_at"]))

    def pass_waits(self, seconds: float = 120) -> None:
        """Lets time pass and ends the back-offs."""
        self.clock.advance(seconds)
        waits, self.waits = self.waits, []
        for session_id, thread_id, execution, _ in waits:
            self.execute(session_id, thread_id, execution)

    def sweep(self, seconds: float = 0) -> SweepReport:
        self.clock.advance(seconds)
        return sweep(self.ctx)

    # -- workers
    def claim(self, worker_id: str = "w1") -> Json | None:
        return work.poll(self.ctx, WORKSPACE, self.environment_id, PollQuery(), worker_id)

    def acknowledge(self, item: Json) -> Principal:
        """Acknowledges claimed work, beats once, and returns what its token stands for."""
        import base64
        import json

        work.acknowledge(self.ctx, WORKSPACE, self.environment_id, item["id"])
        token = json.loads(base64.urlsafe_b64decode(item["secret"]))["sessions_token"]
        holder = work_token.authenticate_token(self.ctx, token)
        self.beat(holder, "NO_HEARTBEAT")
        return holder

    def beat(self, holder: Principal, expected: str | None = None) -> Json:
        assert holder.work_id
        query = HeartbeatQuery(expected_last_heartbeat=expected)
        return work.heartbeat(self.ctx, holder, self.environment_id, holder.work_id, query)

    def stop(self, holder: Principal, force: bool = True) -> Json:
        assert holder.work_id
        return work.stop(self.ctx, holder, self.environment_id, holder.work_id, StopBody(force=force))

    def with_limits(self, **changes: Any) -> None:
        self.ctx = replace(self.ctx, limits=replace(self.ctx.limits, **changes))
        self.turn = replace(self.turn, services=self.ctx)


def message(words: str) -> Json:
    return {"type": "user.message", "content": [{"type": "text", "text": words}]}


def result(call_id: str, words: str = "ok", is_error: bool = False) -> Json:
    content = [{"type": "text", "text": words}]
    return {"type": "user.tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}


def custom_result(call_id: str, words: str = "ok") -> Json:
    content = [{"type": "text", "text": words}]
    return {"type": "user.custom_tool_result", "custom_tool_use_id": call_id, "content": content}


def in_thread(target: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread
