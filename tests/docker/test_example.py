"""The coding-agent example with a real engine: its tools and its tests run in containers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.support.deployment import Deployment
from tests.support.emulated import PROFILES, EmulatedDeployment
from tests.unit.example.walk import Walk

pytestmark = pytest.mark.docker

LABEL = "io.mango.environment-id"


@pytest.fixture(params=PROFILES)
def example_deployment(
    image: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Deployment | EmulatedDeployment]:
    """On one machine, and with the real Lambda handlers and state machine on an emulated cloud."""
    with PROFILES[request.param](tmp_path / "data", "scripted:coding-agent", think_seconds=0.2) as running:
        yield running


def leftovers(engine: docker.DockerClient, walk: Walk) -> list[str]:
    """Names of the containers that the walk left behind: the worker's and the example's own."""
    workers = engine.containers.list(all=True, filters={"label": f"{LABEL}={walk.resources['environment']}"})
    own = engine.containers.list(all=True, filters={"name": "^mango-example-"})
    return [str(container.name) for container in [*workers, *own]]


def test_the_module_is_repaired_across_a_replacement_of_the_worker(
    engine: docker.DockerClient, example_deployment: Deployment | EmulatedDeployment, tmp_path: Path
) -> None:
    walk = Walk(example_deployment, tmp_path / "results")
    walk.ended()
    walk.check_success("a fresh container")
    walk.check_gone(archived_session=True)
    works = {line.split()[1] for line in (walk.folder / "worker.log").read_text().splitlines() if " claimed" in line}
    assert len(works) == 2, "each supervisor has an activation of its own"
    assert leftovers(engine, walk) == []


def test_a_stop_in_the_middle_of_a_turn_leaves_no_container(
    engine: docker.DockerClient, example_deployment: Deployment | EmulatedDeployment, tmp_path: Path
) -> None:
    walk = Walk(example_deployment, tmp_path / "results")
    walk.until("[tool]")
    walk.process.send_signal(signal.SIGTERM)
    assert walk.ended() == 1
    walk.check_gone(archived_session=False)
    assert leftovers(engine, walk) == []
