"""The command around the steps: its time limit, signals, and clearing away whatever happens."""

from __future__ import annotations

import asyncio
import signal
import sys
import traceback
from typing import Any

import anthropic
from anthropic import AsyncAnthropic

from coding_agent.artifacts import Artifacts
from coding_agent.checks import choose_checker
from coding_agent.cleanup import clean_up
from coding_agent.console import plain, say
from coding_agent.failures import ExampleFailed
from coding_agent.settings import Settings
from coding_agent.steps import Steps

LIMIT_SECONDS = 600.0
REQUEST_SECONDS = 30.0


async def perform(settings: Settings) -> int:
    """Walks through the example and clears away; the exit code."""
    artifacts = Artifacts(settings.output_dir, settings.user)
    say(f"Artifacts: {artifacts.folder}")
    if settings.process:
        say("Without Docker: tools and tests run as plain processes of this user, with no isolation.")
    async with AsyncAnthropic(api_key=settings.api_key, base_url=settings.base_url, timeout=REQUEST_SECONDS) as client:
        steps = Steps(settings, client, artifacts)
        problems = await _run(steps)
        problems += await _stop_worker(steps)
        problems += await clean_up(client, steps.resources.recorded, artifacts, succeeded=not problems)
    for problem in problems:
        print(f"coding-agent: {plain(problem)}", file=sys.stderr, flush=True)
    if problems:
        print(f"coding-agent: {artifacts.folder} has what is known, resources.json the ids", file=sys.stderr)
    return 1 if problems else 0


async def check(settings: Settings) -> int:
    """Only sees whether tests and tools could run; the exit code."""
    try:
        await choose_checker(settings).prepare()
    except ExampleFailed as failure:
        print(f"coding-agent: {plain(str(failure))}", file=sys.stderr, flush=True)
        return 1
    return 0


async def _run(steps: Steps) -> list[str]:
    work = asyncio.create_task(steps.walk())
    stopped_by = _stop_on_signals(work)
    _, running = await asyncio.wait({work}, timeout=LIMIT_SECONDS)
    if running:
        work.cancel()
        await asyncio.wait({work})
    if work.cancelled():
        return [f"stopped by {stopped_by[0]}" if stopped_by else f"it took longer than {LIMIT_SECONDS:g} s"]
    return _explained(work.exception())


def _stop_on_signals(work: asyncio.Task[Any]) -> list[str]:
    """The first signal cancels `work`, later ones do nothing more: clearing away is bounded. Gets the names."""
    received: list[str] = []

    def on_signal(number: signal.Signals) -> None:
        if not received:
            say("Stopping and cleaning up...")
            work.cancel()
        received.append(number.name)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    return received


def _explained(error: BaseException | None) -> list[str]:
    if error is None:
        return []
    if not isinstance(error, (ExampleFailed, anthropic.APIError, OSError)):
        traceback.print_exception(error)  # a mistake of the example itself, which must still be cleaned up after
        return [f"{type(error).__name__}: {error}"]
    return [str(error)]


async def _stop_worker(steps: Steps) -> list[str]:
    if steps.worker is None:
        return []
    try:
        await steps.worker.stop()
    except ExampleFailed as failure:
        return [str(failure)]
    return []
