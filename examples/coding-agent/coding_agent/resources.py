"""What the example creates on the server. Every id is written down as soon as it is known, for cleaning up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from anthropic import AsyncAnthropic
from anthropic.types.beta.beta_managed_agents_agent_toolset20260401_params import (
    BetaManagedAgentsAgentToolset20260401Params,
)

from coding_agent.artifacts import Artifacts
from coding_agent.failures import ExampleFailed

T = TypeVar("T")

INSTRUCTIONS = (
    "You repair small Python programs. Look before you change anything, let the tests tell what is wrong, "
    "and never change a test. Use the tools; there is no network."
)


@dataclass(slots=True)
class Recorded:
    """The ids, as they stand in `resources.json`. `files` are ids by what the file is for."""

    base_url: str
    environment: str | None = None
    agent: str | None = None
    agent_version: int | None = None
    session: str | None = None
    files: dict[str, str] = field(default_factory=dict)


class Resources:
    """Creates what the example needs. A creation is finished and written down even if the example is just stopped."""

    def __init__(self, client: AsyncAnthropic, artifacts: Artifacts) -> None:
        # Not retried by the library: a create that is repeated after a lost answer leaves something unknown behind.
        self._client = client.with_options(max_retries=0)
        self._artifacts = artifacts
        self.recorded = Recorded(str(client.base_url))

    async def create_environment(self) -> str:
        async def create() -> str:
            made = await self._client.beta.environments.create(name="Coding agent demo", config={"type": "self_hosted"})
            self.recorded.environment = made.id
            return made.id

        return await self._finished(create())

    async def create_agent(self, model_id: str) -> str:
        async def create() -> str:
            made = await self._client.beta.agents.create(
                name="Invoice debugger", model=model_id, system=INSTRUCTIONS, tools=[_local_tools()]
            )
            self.recorded.agent, self.recorded.agent_version = made.id, made.version
            return made.id

        return await self._finished(create())

    async def create_session(self) -> str:
        recorded = self.recorded
        assert recorded.agent and recorded.agent_version and recorded.environment
        agent, version, environment = recorded.agent, recorded.agent_version, recorded.environment

        async def create() -> str:
            made = await self._client.beta.sessions.create(
                agent={"type": "agent", "id": agent, "version": version},
                environment_id=environment,
                title="Fix invoice calculations",
            )
            recorded.session = made.id
            return made.id

        return await self._finished(create())

    async def transfer(self, name: str, content: bytes) -> bytes:
        """Uploads a file, downloads it again and returns what came back. Raises `ExampleFailed` if it differs."""

        async def upload() -> str:
            made = await self._client.beta.files.upload(file=(name, content, "text/x-python"))
            self.recorded.files[name] = made.id
            return made.id

        file_id = await self._finished(upload())
        downloaded = await (await self._client.beta.files.download(file_id)).read()
        if downloaded != content:
            raise ExampleFailed(f"the download of {name} ({file_id}) differs from what was uploaded")
        return downloaded

    def save(self) -> None:
        self._artifacts.save_json("resources.json", asdict(self.recorded))

    async def _finished(self, creation: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(creation)
        try:
            return await asyncio.shield(task)
        finally:
            # When this is cancelled the request is still under way, and what it makes must be known.
            await asyncio.wait({task})
            self.save()


def _local_tools() -> BetaManagedAgentsAgentToolset20260401Params:
    """The six tools of the worker, without asking; no web tools, since the task is all in the given files."""
    return {
        "type": "agent_toolset_20260401",
        "default_config": {"enabled": False, "permission_policy": {"type": "always_allow"}},
        "configs": [
            {"name": "bash", "enabled": True, "permission_policy": {"type": "always_allow"}},
            {"name": "read", "enabled": True, "permission_policy": {"type": "always_allow"}},
            {"name": "write", "enabled": True, "permission_policy": {"type": "always_allow"}},
            {"name": "edit", "enabled": True, "permission_policy": {"type": "always_allow"}},
            {"name": "glob", "enabled": True, "permission_policy": {"type": "always_allow"}},
            {"name": "grep", "enabled": True, "permission_policy": {"type": "always_allow"}},
        ],
    }
