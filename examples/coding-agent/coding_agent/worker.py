"""The supervisor: a `mango-worker` command that the example starts, replaces and stops."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from datetime import UTC, datetime

from coding_agent.artifacts import Artifacts
from coding_agent.failures import ExampleFailed
from coding_agent.programs import child_environment
from coding_agent.settings import Settings

STOP_SECONDS = 150.0


class Worker:
    """One supervisor at a time for an environment. Everything that it says goes to `worker.log`."""

    def __init__(self, settings: Settings, environment_id: str, artifacts: Artifacts) -> None:
        self._settings, self._environment_id, self._artifacts = settings, environment_id, artifacts
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Raises `ExampleFailed` if the command cannot be started."""
        environment = child_environment(os.environ) | {"MANGO_ENVIRONMENT_KEY": self._settings.api_key}
        with self._artifacts.worker_log.open("ab") as log:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command(),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    # Ctrl-C is for the example, which then stops the supervisor in good order.
                    start_new_session=True,
                )
            except OSError as error:
                raise ExampleFailed(f"{self._settings.worker} cannot be started: {error.strerror}") from None
        self._note(f"supervisor {self._process.pid} started")

    async def ended(self) -> str:
        """Returns when the supervisor has ended although nobody stopped it, and tells how."""
        assert self._process is not None
        code = await self._process.wait()
        self._note(f"supervisor {self._process.pid} ended on its own with exit code {code}")
        self._process = None
        return f"the worker ended on its own with exit code {code}; {self._artifacts.worker_log} has its reasons"

    async def stop(self) -> None:
        """Lets the supervisor end its container and itself. Raises `ExampleFailed` if it does not, or not well."""
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                code = await process.wait()
        except TimeoutError:
            process.kill()
            code = await process.wait()
        self._process = None
        self._note(f"supervisor {process.pid} ended with exit code {code}")
        if code not in (0, -signal.SIGTERM):  # the latter: it had not even begun to listen for signals, or to work
            raise ExampleFailed(f"the worker did not stop well (exit code {code}); see {self._artifacts.worker_log}")

    def _command(self) -> list[str]:
        settings = self._settings
        command = [str(settings.worker), "process" if settings.process else "docker"]
        command += ["--environment-id", self._environment_id, "--base-url", settings.base_url]
        command += ["--workspace-root", str(self._artifacts.folder), "--max-idle", "1m"]
        if settings.process:
            return [*command, "--unsandboxed"]
        user = f"{settings.user[0]}:{settings.user[1]}"
        return [*command, "--sandbox-base-url", settings.docker_base_url, "--image", settings.image, "--user", user]

    def _note(self, what: str) -> None:
        with self._artifacts.worker_log.open("a", encoding="utf-8") as log:
            log.write(f"[example] {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {what}\n")
