"""Fixtures of the handlers' tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.roto import RotoServer
from tests.unit.handlers.functions import Deployed, wired


@pytest.fixture(scope="session")
def deployment() -> Iterator[Deployed]:
    """One store for all tests of this process."""
    with tempfile.TemporaryDirectory(prefix="mango-roto-") as folder, RotoServer(Path(folder)) as server:
        yield Deployed(server)


@pytest.fixture
def deployed(deployment: Deployed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    """Functions that have just started."""
    with wired(deployment, monkeypatch):
        yield deployment
