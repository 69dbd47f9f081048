"""An engine whose answers get lost: what was asked for happened, and must be found rather than done twice."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import docker
import docker.errors
import pytest
import requests.exceptions

from mango_worker.supervisor.containers import DockerSandbox
from mango_worker.supervisor.engine import EngineSilent
from mango_worker.supervisor.options import ContainerOptions, Options
from mango_worker.supervisor.work import WorkItem
from tests.unit.worker.stub_api import ENVIRONMENT, KEY, StubApi

pytestmark = pytest.mark.docker


class Lossy:
    """The engine's client; the answers to the calls named in `losing` are lost once each, before or after the deed."""

    def __init__(self, api: docker.APIClient) -> None:
        self._api = api
        self.losing: dict[str, bool] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._api, name)
        if name not in self.losing:
            return real

        def lossy(*arguments: Any, **named: Any) -> Any:
            done = self.losing.pop(name, None)
            if done is None:
                return real(*arguments, **named)
            if done:
                with suppress(docker.errors.APIError):
                    real(*arguments, **named)
            raise requests.exceptions.ReadTimeout(f"{name}: lost")

        return lossy


@pytest.fixture
def lossy(engine: docker.DockerClient, image: str, volumes: None) -> Lossy:
    return Lossy(engine.api)


@pytest.fixture
def item(stub: StubApi) -> Iterator[WorkItem]:
    work = stub.add_work()
    work.state = "starting"
    yield WorkItem(work.id, ENVIRONMENT, "session", stub.session, stub.show(work, secret=True)["secret"])


@pytest.fixture
def sandbox(lossy: Lossy, stub: StubApi) -> DockerSandbox:
    options = Options(ENVIRONMENT, KEY, stub.url, f"lossy{stub.suffix}", max_idle=0.3)
    container = ContainerOptions(sandbox_base_url=f"http://host.docker.internal:{stub.port}")
    return DockerSandbox(lossy, options, container)  # type: ignore[arg-type]


def names(engine: docker.DockerClient, session: str) -> list[str]:
    return [
        str(one.name)
        for one in engine.containers.list(
            all=True, ignore_removed=True, filters={"label": f"io.mango.session-id={session}"}
        )
    ]


@pytest.mark.parametrize("call", ["create_container", "start", "inspect_container", "create_volume"])
@pytest.mark.parametrize("done", [True, False])
def test_a_lost_answer(
    engine: docker.DockerClient,
    lossy: Lossy,
    sandbox: DockerSandbox,
    item: WorkItem,
    stub: StubApi,
    call: str,
    done: bool,
) -> None:
    lossy.losing[call] = done
    stub.idle()
    if call in ("create_volume", "inspect_container"):
        # These are asked before anything is made: the item fails, and the next claim of it goes well.
        with pytest.raises(EngineSilent):
            sandbox.prepare(item)
            sandbox.start(item)
    sandbox.prepare(item)
    running = sandbox.start(item)
    assert names(engine, stub.session) == [f"mango-{item.id}"]
    ended = running.wait(threading.Event())
    assert ended is not None and ended.code == 0
    lossy.losing["remove_container"] = done
    with pytest.raises(EngineSilent):
        running.remove()
    running.remove()
    assert names(engine, stub.session) == []


def test_the_engine_being_away_for_a_while_is_waited_out(
    lossy: Lossy, sandbox: DockerSandbox, item: WorkItem, stub: StubApi
) -> None:
    sandbox.prepare(item)
    running = sandbox.start(item)
    lossy.losing["inspect_container"] = False
    stub.idle()
    ended = running.wait(threading.Event())
    assert ended is not None and ended.code == 0
    running.remove()
