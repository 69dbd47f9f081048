"""A worker is lost in the middle of a tool: another finishes the session, and the lost one cannot write any more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic

from tests.support.deployment import Deployment
from tests.support.invariants import check_history
from tests.support.workers import ProcessWorker, wait_until

SCRIPT = Path(__file__).parents[1] / "support" / "scripts" / "slow_tool.py"
LEASE = 30.0
"""Seconds a silent worker keeps its claim (decision 37)."""


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(tmp_path / "data", f"scripted:{SCRIPT}") as running:
        yield running


def start(client: Anthropic) -> tuple[str, str]:
    agent = client.beta.agents.create(name="Slow", model="scripted", tools=[{"type": "agent_toolset_20260401"}])
    environment = client.beta.environments.create(name="Host")
    session = client.beta.sessions.create(
        agent=agent.id,
        environment_id=environment.id,
        initial_events=[{"type": "user.message", "content": [{"type": "text", "text": "go"}]}],
    )
    return session.id, environment.id


def events_of(client: Anthropic, session_id: str) -> list[dict[str, Any]]:
    return [event.to_dict(mode="json") for event in client.beta.sessions.events.list(session_id, limit=1000)]


def ended(client: Anthropic, session_id: str) -> bool:
    last = events_of(client, session_id)[-1]
    return bool(last["type"] == "session.status_idle" and last["stop_reason"]["type"] == "end_turn")


def runs(root: Path, session_id: str) -> int:
    """How often the tool's command was started."""
    path = root / session_id / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def check_one_result(events: list[dict[str, Any]]) -> None:
    check_history([{"processed_at": None, **event} for event in events])
    results = [event for event in events if event["type"] == "user.tool_result"]
    assert [result["content"][0]["text"].strip() for result in results] == ["finished"]


def test_killed_worker_is_replaced_after_its_lease(deployment: Deployment, tmp_path: Path) -> None:
    client, root = deployment.client(), tmp_path / "workspaces"
    session_id, environment_id = start(client)
    with ProcessWorker(deployment.url, environment_id, root, tmp_path / "first.log") as first:
        wait_until("the tool runs", lambda: runs(root, session_id) == 1)
        first.kill()
    with ProcessWorker(deployment.url, environment_id, root, tmp_path / "second.log"):
        wait_until("the second worker ends the turn", lambda: ended(client, session_id), LEASE + 30)
    assert runs(root, session_id) == 2
    check_one_result(events_of(client, session_id))


def test_frozen_worker_cannot_write_after_another_took_over(deployment: Deployment, tmp_path: Path) -> None:
    client, root = deployment.client(), tmp_path / "workspaces"
    session_id, environment_id = start(client)
    with ProcessWorker(deployment.url, environment_id, root, tmp_path / "first.log") as first:
        wait_until("the tool runs", lambda: runs(root, session_id) == 1)
        first.freeze()
        with ProcessWorker(deployment.url, environment_id, root, tmp_path / "second.log"):
            wait_until("the second worker ends the turn", lambda: ended(client, session_id), LEASE + 30)
            before = events_of(client, session_id)
            first.thaw()
            wait_until("the first notices", lambda: "lease lost" in first.log.read_text())
    check_one_result(before)
    assert events_of(client, session_id)[: len(before)] == before
    check_one_result(events_of(client, session_id))
