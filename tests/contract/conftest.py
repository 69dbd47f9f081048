"""Fixtures: `backend` runs a test on the twin, moto and roto; `pk` is a partition that no other test uses."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from mango.aws.clients import AwsSettings, Clients
from tests.contract.backends import AnyStore, Backend, Moto, on_roto, prepare, twin
from tests.support.roto import RotoServer


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """For a server. Not pytest's own, which other sessions on the machine clean up."""
    with tempfile.TemporaryDirectory(prefix="mango-roto-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def roto() -> Iterator[RotoServer]:
    """One server for all tests of this process."""
    with tempfile.TemporaryDirectory(prefix="mango-roto-") as folder, RotoServer(Path(folder)) as server:
        yield server


@pytest.fixture(scope="session")
def roto_clients(roto: RotoServer) -> Iterator[Clients]:
    """Clients of that server, on which table and bucket exist."""
    clients = Clients(roto.settings)
    prepare(clients)
    yield clients
    clients.close()


@pytest.fixture(scope="session")
def moto_clients() -> Iterator[Clients]:
    """Clients that reach moto while it runs; slow to make."""
    clients = Clients(AwsSettings(access_key_id="test", secret_access_key="test"))
    yield clients
    clients.close()


@pytest.fixture(scope="module")
def moto(moto_clients: Clients) -> Moto:
    """One per module, as it is slow when it holds much."""
    return Moto(moto_clients)


@pytest.fixture(params=["twin", "moto", "roto"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Each of the three in turn."""
    if request.param == "twin":
        yield twin()
    elif request.param == "moto":
        with request.getfixturevalue("moto").running() as backend:
            yield backend
    else:
        yield on_roto(request.getfixturevalue("roto_clients"))


@pytest.fixture
def store(backend: Backend) -> AnyStore:
    """The backend's store."""
    return backend.store


@pytest.fixture
def pk() -> str:
    """A partition of this test's own."""
    return f"T#{uuid.uuid4().hex}"
