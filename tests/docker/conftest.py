"""Fixtures of the tests that need a Docker engine.

Without an engine they are skipped, saying so; on a continuous integration machine, which must have one, they fail.
"""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from tests.unit.worker.stub_api import ENVIRONMENT, KEY, StubApi

PROJECT = Path(__file__).parents[2]
IMAGE = "mango-self-hosted-worker:local"
BOUND = 60.0

Supervise = Callable[..., "Supervisor"]


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A client of the engine that answers."""
    try:
        client = docker.from_env(timeout=30)
        client.ping()
    except docker.errors.DockerException as error:
        if os.environ.get("CI"):
            pytest.fail(f"no Docker engine answers, which CI needs: {error}")
        pytest.skip(f"no Docker engine answers: {error}")
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient) -> str:
    """The worker image of the sources as they are; built if it is missing or old."""
    build = PROJECT / "infra/docker/build-worker-image"
    done = subprocess.run([build, "--image", IMAGE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return IMAGE


@pytest.fixture
def stub() -> Iterator[StubApi]:
    """An API that containers reach too."""
    with StubApi(host="0.0.0.0", suffix=f"x{uuid.uuid4().hex[:8]}") as api:
        yield api


@pytest.fixture
def volumes(engine: docker.DockerClient, stub: StubApi) -> Iterator[None]:
    """Remove what the test's session leaves behind."""
    yield
    for container in engine.containers.list(
        all=True, ignore_removed=True, filters={"label": f"io.mango.session-id={stub.session}"}
    ):
        container.remove(force=True)
    for volume in engine.volumes.list(filters={"name": f"mango-ws-{stub.session}"}):
        volume.remove(force=True)


class Supervisor:
    """A running `mango-worker docker`."""

    def __init__(self, url: str, home: Path, arguments: tuple[str, ...], changes: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mango_worker", "docker", *arguments],
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={
                **os.environ, "HOME": str(home), "MANGO_ENVIRONMENT_KEY": KEY, "MANGO_ENVIRONMENT_ID": ENVIRONMENT,
                "MANGO_BASE_URL": url, "MANGO_WORKER_IMAGE": IMAGE, **changes,
            },
        )  # fmt: skip

    def ended(self) -> tuple[int, str]:
        """Exit code and everything it said."""
        _, said = self.process.communicate(timeout=BOUND)
        return self.process.returncode, said

    def stop(self) -> tuple[int, str]:
        self.process.terminate()
        return self.ended()


@pytest.fixture
def supervise(image: str, stub: StubApi, volumes: None, tmp_path: Path) -> Iterator[Supervise]:
    started: list[Supervisor] = []

    def go(*arguments: str, **changes: str) -> Supervisor:
        started.append(Supervisor(stub.url, tmp_path, arguments, changes))
        return started[-1]

    yield go
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


@pytest.fixture
def container(engine: docker.DockerClient, stub: StubApi) -> Callable[[], dict[str, Any]]:
    """What the engine says about the test session's one container."""

    def inspect() -> dict[str, Any]:
        (found,) = engine.containers.list(
            all=True, ignore_removed=True, filters={"label": f"io.mango.session-id={stub.session}"}
        )
        description: dict[str, Any] = found.attrs
        return description

    return inspect
