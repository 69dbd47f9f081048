"""`kill -9` of `mango up` at random moments of a turn: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.deployment import Deployment, store_processes
from tests.support.invariants import check_history

KILLS = int(os.environ.get("KILLS", "10"))
TOOLS = KILLS
MOVES_AGAIN = 2.0
"""Seconds after a restart within which the session must move (issue 2, item 2)."""


class Poster(threading.Thread):
    """Answers every open tool call, as a worker would, through every outage."""

    def __init__(self, deployment: Deployment, session_id: str) -> None:
        super().__init__(daemon=True)
        self._deployment = deployment
        self._path = f"/v1/sessions/{session_id}/events"
        self.done = threading.Event()
        self.paused = threading.Event()

    def run(self) -> None:
        while not self.done.is_set():
            try:
                with self._deployment.http() as http:
                    self._answer(http)
            except httpx.TransportError:
                time.sleep(0.02)

    def _answer(self, http: httpx.Client) -> None:
        while not self.done.is_set():
            events = history(http, self._path)
            answered = {event["tool_use_id"] for event in events if event["type"] == "user.tool_result"}
            calls = [e["id"] for e in events if e["type"] == "agent.tool_use" and e["id"] not in answered]
            for call in calls:
                content = [{"type": "text", "text": f"result of {call}"}]
                body = {"type": "user.tool_result", "tool_use_id": call, "content": content}
                answer = http.post(self._path, json={"events": [body]})
                # 400: an earlier try arrived although its answer did not. 503: the store is on its way up or down.
                assert answer.status_code in (200, 400, 503), answer.text
            time.sleep(0.01)


def history(http: httpx.Client, path: str) -> list[dict[str, Any]]:
    answer = http.get(path, params={"limit": 1000})
    if answer.status_code == 503:
        raise httpx.ConnectError("the store is not there yet")
    answer.raise_for_status()
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


def start_session(deployment: Deployment) -> str:
    client = deployment.client()
    agent = client.beta.agents.create(name="Ten", model="scripted", tools=[{"type": "agent_toolset_20260401"}])
    environment = client.beta.environments.create(name="Here")
    session = client.beta.sessions.create(
        agent=agent.id,
        environment_id=environment.id,
        initial_events=[{"type": "user.message", "content": [{"type": "text", "text": f"run {TOOLS}"}]}],
    )
    return session.id


def is_over(events: list[dict[str, Any]]) -> bool:
    last = events[-1]
    return bool(last["type"] == "session.status_idle" and last["stop_reason"]["type"] == "end_turn")


def wait_for_move(deployment: Deployment, path: str, known: int) -> float:
    began = time.monotonic()
    with deployment.http() as http:
        while time.monotonic() - began < 20:
            events = history(http, path)
            if len(events) > known or is_over(events):
                return time.monotonic() - began
            time.sleep(0.01)
    raise AssertionError(f"the session never moved again:\n{deployment.log.read_text()[-4000:]}")


@pytest.mark.parametrize("seed", [1])
def test_kills_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    moments = random.Random(seed)
    with Deployment(tmp_path / "data", "scripted:ten-tools", think_seconds=0.08) as deployment:
        session_id = start_session(deployment)
        path = f"/v1/sessions/{session_id}/events"
        poster = Poster(deployment, session_id)
        poster.start()
        seen: list[dict[str, Any]] = []
        slowest = 0.0
        for _ in range(KILLS):
            time.sleep(moments.uniform(0.0, 0.12))
            with deployment.http() as http:
                seen = history(http, path)
            deployment.kill()
            deployment.start()
            with deployment.http() as http:
                after = history(http, path)
            known = [event["id"] for event in seen if event["processed_at"]]
            assert [event["id"] for event in after][: len(known)] == known
            slowest = max(slowest, wait_for_move(deployment, path, len(seen)))
        events = finish(deployment, path)
        poster.done.set()
        poster.join()
        check_history(events)
        uses = [event["id"] for event in events if event["type"] == "agent.tool_use"]
        results = [event["tool_use_id"] for event in events if event["type"] == "user.tool_result"]
        assert results == uses
        assert len(uses) == TOOLS
        assert slowest <= MOVES_AGAIN, f"took {slowest:.2f} s to move again"
        print(f"{KILLS} kills, {len(events)} events, slowest to move again {slowest:.2f} s")
    assert store_processes(deployment.data_dir) == []


def finish(deployment: Deployment, path: str) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 60
    with deployment.http() as http:
        while time.monotonic() < deadline:
            events = history(http, path)
            if is_over(events):
                return events
            time.sleep(0.05)
    raise AssertionError(f"the session did not end:\n{deployment.log.read_text()[-4000:]}")
