"""Leaves nothing of the example behind on the server. Every step is tried, whatever became of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import anthropic
from anthropic import AsyncAnthropic

from coding_agent.artifacts import Artifacts
from coding_agent.observer import history
from coding_agent.resources import Recorded

SECONDS = 45.0
_REQUEST_SECONDS = 10.0
_POLL_SECONDS = 0.5


async def clean_up(client: AsyncAnthropic, recorded: Recorded, artifacts: Artifacts, *, succeeded: bool) -> list[str]:
    """Archives or deletes what was created; what could not be done is returned, a line each."""
    cleaning = _Cleaning(client.with_options(timeout=_REQUEST_SECONDS), recorded, artifacts)
    try:
        async with asyncio.timeout(SECONDS):
            await cleaning.session(archive=succeeded)
            await cleaning.others()
    except TimeoutError:
        cleaning.problems.append(f"cleaning up took longer than {SECONDS:g} s")
    return cleaning.problems


class _Cleaning:
    def __init__(self, client: AsyncAnthropic, recorded: Recorded, artifacts: Artifacts) -> None:
        self._beta, self._client = client.beta, client
        self._recorded, self._artifacts = recorded, artifacts
        self.problems: list[str] = []

    async def session(self, *, archive: bool) -> None:
        session_id = self._recorded.session
        if session_id is None:
            return
        if archive:
            await self._attempt(f"archiving session {session_id}", self._beta.sessions.archive(session_id))
            return
        await self._attempt("saving the history", self._save_history(session_id))
        await self._attempt(f"deleting session {session_id}", self._delete_session(session_id))

    async def others(self) -> None:
        recorded = self._recorded
        if recorded.agent is not None:
            await self._attempt(f"archiving agent {recorded.agent}", self._beta.agents.archive(recorded.agent))
        if recorded.environment is not None:
            archiving = self._beta.environments.archive(recorded.environment)
            await self._attempt(f"archiving environment {recorded.environment}", archiving)
        for file_id in recorded.files.values():
            await self._attempt(f"deleting file {file_id}", self._beta.files.delete(file_id))

    async def _save_history(self, session_id: str) -> None:
        self._artifacts.save_json("events.json", await history(self._client, session_id))

    async def _delete_session(self, session_id: str) -> None:
        """Interrupts it first if it runs: only a session that rests can be deleted."""
        interrupted = False
        while (await self._beta.sessions.retrieve(session_id)).status in ("running", "rescheduling"):
            if not interrupted:
                await self._beta.sessions.events.send(session_id, events=[{"type": "user.interrupt"}])
                interrupted = True
            await asyncio.sleep(_POLL_SECONDS)
        if interrupted:
            await self._save_history(session_id)
        await self._beta.sessions.delete(session_id)

    async def _attempt(self, what: str, action: Coroutine[Any, Any, object]) -> None:
        try:
            await action
        except anthropic.NotFoundError:
            pass  # gone already
        except (anthropic.APIError, OSError) as error:
            self.problems.append(f"{what} failed: {error}")
