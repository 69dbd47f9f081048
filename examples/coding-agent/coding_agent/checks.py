"""Runs the tests independently of the agent, and judges what they print."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Protocol

from coding_agent.failures import ExampleFailed
from coding_agent.programs import Ended, execute
from coding_agent.settings import Settings

TEST_SECONDS = 60.0
_UNITTEST = ("-B", "-m", "unittest", "-v")
_DOCKER_SECONDS = 30.0
_DOCKER_FAILED = 125  # the exit code of `docker run` when it is Docker's own


class Checker(Protocol):
    """Runs the tests of a directory. `place` says where, as in: tests pass in `place`."""

    place: str

    async def prepare(self) -> None:
        """Raises `ExampleFailed` if tests or tools could not run here."""
        ...

    async def run(self, folder: Path) -> Ended: ...


class ContainerChecker:
    """Tests in a container of their own, which can neither write anything nor reach anybody.

    Args:
        image: the worker's image, which has Python.
        user: whom the tests run as.
        docker_base_url: the API as a container sees it.
    """

    place = "a fresh container"

    def __init__(self, image: str, user: tuple[int, int], docker_base_url: str) -> None:
        self._image, self._docker_base_url = image, docker_base_url
        self._user = f"{user[0]}:{user[1]}"

    async def prepare(self) -> None:
        inspected = await execute(["docker", "image", "inspect", self._image], seconds=_DOCKER_SECONDS)
        if inspected.code != 0:
            raise ExampleFailed(
                f"Docker has no image {self._image} ({_last_line(inspected.output)}); build it with "
                "infra/docker/build-worker-image, or use --process on a machine without Docker"
            )
        # Without this, a firewall between containers and the host would show only as a turn that never ends.
        look = f"import urllib.request; urllib.request.urlopen({self._docker_base_url + '/healthz'!r}, timeout=10)"
        reached = await self._container(
            ["--add-host=host.docker.internal:host-gateway", "--entrypoint", "python3"], ["-c", look]
        )
        if reached.code != 0:
            raise ExampleFailed(
                f"containers cannot reach the API at {self._docker_base_url}: {_last_line(reached.output)}; "
                "set MANGO_DOCKER_BASE_URL, and see that the API listens there and no firewall is between"
            )

    async def run(self, folder: Path) -> Ended:
        mount = f"type=bind,source={folder},target=/workspace,readonly"
        return await self._container(
            ["--network=none", "--mount", mount, "--workdir", "/workspace", "--entrypoint", "python3"], [*_UNITTEST]
        )

    async def _container(self, options: list[str], arguments: list[str]) -> Ended:
        name = f"mango-example-{secrets.token_hex(6)}"
        hardened = [
            "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--memory=256m", "--pids-limit=64",
            "--user", self._user,
        ]  # fmt: skip
        command = ["docker", "run", "--rm", "--pull=never", "--name", name, *hardened, *options]
        ended = None
        try:
            ended = await execute([*command, self._image, *arguments], seconds=TEST_SECONDS)
        finally:
            if ended is None:  # the command is gone, but the engine goes on with what it was asked for
                await execute(["docker", "rm", "--force", name], seconds=_DOCKER_SECONDS)
        if ended.code == _DOCKER_FAILED:
            raise ExampleFailed(f"Docker cannot run a container: {_first_line(ended.output)}")
        return ended


class SubprocessChecker:
    """Tests in a plain child process of this user: for machines without Docker, and without any isolation."""

    place = "a fresh subprocess, without a container"

    async def prepare(self) -> None:
        """There is nothing to prepare."""

    async def run(self, folder: Path) -> Ended:
        # Neither settings nor credentials of this process: the module under test is not to be trusted.
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        return await execute([sys.executable, *_UNITTEST], seconds=TEST_SECONDS, folder=folder, environment=environment)


def choose_checker(settings: Settings) -> Checker:
    """Containers, or what stands in for them."""
    if settings.process:
        return SubprocessChecker()
    return ContainerChecker(settings.image, settings.user, settings.docker_base_url)


def require_baseline(ended: Ended) -> None:
    """The original must fail in exactly the known way: three failures, no error."""
    if ended.code != 1 or "\nRan 4 tests in " not in ended.output or _last_line(ended.output) != "FAILED (failures=3)":
        raise ExampleFailed(f"the original module does not fail as it should: {_last_line(ended.output)}")


def require_success(ended: Ended) -> None:
    """All four tests must have run and passed, none skipped."""
    if ended.code != 0 or "\nRan 4 tests in " not in ended.output or not ended.output.rstrip().endswith("\nOK"):
        raise ExampleFailed(f"the repaired module does not pass the pristine tests: {_last_line(ended.output)}")


def _first_line(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[0]


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[-1]
