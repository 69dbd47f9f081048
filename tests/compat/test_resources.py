"""The stock client reads agents, environments and files of ours with its strict response validation."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
from anthropic import AsyncAnthropic, BadRequestError, NotFoundError, UnprocessableEntityError
from anthropic.types.beta.agent_create_params import Tool

from mango.api.asgi import create_asgi
from tests.unit.api.desk import WORKSPACE_KEY, Desk

Story = Callable[[AsyncAnthropic], Awaitable[None]]


@asynccontextmanager
async def stock_client() -> AsyncIterator[AsyncAnthropic]:
    desk = Desk()
    app = create_asgi(desk.ctx, desk.api)
    transport = httpx2.ASGITransport(app=cast(Any, app))
    async with AsyncAnthropic(
        api_key=WORKSPACE_KEY,
        base_url="http://mango",
        http_client=httpx2.AsyncClient(transport=transport),
        max_retries=0,
        _strict_response_validation=True,
    ) as client:
        yield client
    app.close()


def told(story: Story) -> None:
    """Runs a story against a fresh deployment."""

    async def run() -> None:
        async with stock_client() as client:
            await story(client)

    asyncio.run(run())


TOOLS: list[Tool] = [
    {
        "type": "agent_toolset_20260401",
        "default_config": {"permission_policy": {"type": "always_ask"}},
        "configs": [{"name": "bash", "permission_policy": {"type": "always_allow"}}],
    },
    {
        "type": "custom",
        "name": "look_up",
        "description": "Looks a word up.",
        "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
]


def test_agents() -> None:
    async def story(client: AsyncAnthropic) -> None:
        agents = client.beta.agents
        plain = await agents.create(name="Plain", model="claude-opus-5")
        assert (plain.version, plain.type, plain.archived_at, plain.tools) == (1, "agent", None, [])
        full = await agents.create(
            name="Full",
            model={"id": "claude-opus-5", "effort": "high", "speed": "fast"},
            description="d",
            system="s",
            tools=TOOLS,
            metadata={"team": "blue"},
        )
        toolset, custom = full.tools
        assert toolset.type == "agent_toolset_20260401"
        asking = {config.name for config in toolset.configs if config.permission_policy.type == "always_ask"}
        assert asking == {"edit", "read", "write", "glob", "grep", "web_fetch", "web_search"}
        assert custom.type == "custom"
        assert full.model.effort is not None and full.model.effort.type == "high"
        assert (full.metadata, full.model.speed) == ({"team": "blue"}, "fast")
        assert await agents.retrieve(full.id) == full
        assert await agents.retrieve(full.id, version=1) == full
        listed = [one.id async for one in agents.list(limit=1)]
        assert listed == [full.id, plain.id]
        archived = await agents.archive(plain.id)
        assert archived.archived_at is not None
        assert [one.id async for one in agents.list(created_at_gte=full.created_at)] == [full.id]
        assert len([one async for one in agents.list(include_archived=True)]) == 2

    told(story)


def test_environments() -> None:
    async def story(client: AsyncAnthropic) -> None:
        environments = client.beta.environments
        plain = await environments.create(name="Here")
        full = await environments.create(
            name="Here", description="d", config={"type": "self_hosted"}, metadata={"a": "b"}
        )
        assert (plain.config.type, full.config.type) == ("self_hosted", "self_hosted")
        assert await environments.retrieve(full.id) == full
        assert [one.id async for one in environments.list(limit=1)] == [full.id, plain.id]
        assert (await environments.archive(plain.id)).archived_at
        assert [one.id async for one in environments.list()] == [full.id]
        stats = await environments.work.stats(full.id)
        assert (stats.depth, stats.pending, stats.oldest_queued_at) == (0, 0, None)
        assert await environments.work.poll(full.id, block_ms=1) is None
        assert [one async for one in environments.work.list(full.id)] == []

    told(story)


def test_files() -> None:
    async def story(client: AsyncAnthropic) -> None:
        files = client.beta.files
        data = os.urandom(300_000)
        named = await files.upload(file=("data.bin", data, "application/x-thing"), expires_in_seconds=3600)
        assert (named.filename, named.size_bytes, named.mime_type) == ("data.bin", 300_000, "application/x-thing")
        assert named.expires_at is not None and (named.expires_at - named.created_at).total_seconds() == 3600
        bare = await files.upload(file=b"bare")
        assert bare.size_bytes == 4
        assert await files.retrieve_metadata(named.id) == named
        content = await files.download(named.id)
        assert await content.read() == data
        assert [one.id async for one in files.list(limit=1)] == [bare.id, named.id]
        assert [one.id async for one in files.list(ids=[named.id])] == [named.id]
        assert (await files.delete(bare.id)).type == "file_deleted"
        with pytest.raises(NotFoundError):
            await files.download(bare.id)

    told(story)


def test_sessions() -> None:
    async def story(client: AsyncAnthropic) -> None:
        agent = await client.beta.agents.create(name="Ada", model="m", tools=TOOLS)
        environment = await client.beta.environments.create(name="Here")
        sessions = client.beta.sessions
        plain = await sessions.create(agent=agent.id, environment_id=environment.id)
        assert (plain.status, plain.title, plain.agent.version) == ("idle", None, 1)
        busy = await sessions.create(
            agent={"type": "agent_with_overrides", "id": agent.id, "system": "other", "tools": []},
            environment_id=environment.id,
            title="t",
            metadata={"a": "b"},
            initial_events=[{"type": "user.message", "content": [{"type": "text", "text": "hi"}]}],
        )
        assert (busy.status, busy.agent.system, busy.agent.tools) == ("running", "other", [])
        assert [one.id async for one in sessions.list(limit=1)] == [busy.id, plain.id]
        assert [one.id async for one in sessions.list(statuses=["running"], agent_id=agent.id)] == [busy.id]
        events = [one.type async for one in sessions.events.list(busy.id, limit=1, types=["user.message"])]
        assert events == ["user.message"]
        sent = await sessions.events.send(busy.id, events=[{"type": "user.interrupt"}])
        assert sent.data is not None and sent.data[0].type == "user.interrupt"
        assert (await sessions.archive(plain.id)).status == "terminated"
        assert (await sessions.delete(plain.id)).type == "session_deleted"

    told(story)


def test_errors() -> None:
    async def story(client: AsyncAnthropic) -> None:
        with pytest.raises(BadRequestError, match="name: must not be empty") as caught:
            await client.beta.agents.create(name="", model="m")
        assert caught.value.request_id and caught.value.request_id.startswith("req_")
        with pytest.raises(UnprocessableEntityError, match=r"config\.type: .* is not supported yet"):
            await client.beta.environments.create(name="x", config={"type": "cloud"})
        with pytest.raises(NotFoundError) as missing:
            await client.beta.environments.retrieve("env_none")
        assert missing.value.error_code == "environment_not_found"

    told(story)
