"""The stock client's own `EnvironmentWorker` serves an environment of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from anthropic import AsyncAnthropic
from anthropic.lib.environments import EnvironmentWorker

from tests.support.deployment import KEY, Deployment


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(tmp_path / "data", "scripted:ten-tools") as running:
        yield running


async def serve_until_idle(client: AsyncAnthropic, environment_id: str, session_id: str, workdir: Path) -> None:
    worker = EnvironmentWorker(client, environment_id=environment_id, environment_key=KEY, workdir=workdir)
    serving = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(60):
            while True:
                session = await client.beta.sessions.retrieve(session_id)
                events = [event async for event in client.beta.sessions.events.list(session_id, limit=1000)]
                last = events[-1]
                ended = last.type == "session.status_idle" and last.stop_reason.type == "end_turn"
                if ended and session.status == "idle":
                    return
                await asyncio.sleep(0.1)
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


def test_stock_worker_runs_a_tool_call(deployment: Deployment, tmp_path: Path) -> None:
    client = deployment.client()
    agent = client.beta.agents.create(name="Two", model="scripted", tools=[{"type": "agent_toolset_20260401"}])
    environment = client.beta.environments.create(name="Stock")
    session = client.beta.sessions.create(
        agent=agent.id,
        environment_id=environment.id,
        initial_events=[{"type": "user.message", "content": [{"type": "text", "text": "run 2"}]}],
    )
    workdir = tmp_path / "work"
    workdir.mkdir()

    async def run() -> None:
        async with deployment.async_client() as stock:
            await serve_until_idle(stock, environment.id, session.id, workdir)

    asyncio.run(run())
    events = list(client.beta.sessions.events.list(session.id))
    results = [event for event in events if event.type == "user.tool_result"]
    texts = [block.text for result in results for block in result.content or [] if block.type == "text"]
    assert [text.strip() for text in texts] == ["step 1", "step 2"]
    assert [result.is_error for result in results] == [False, False]
