"""Fixtures of the worker's tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mango_worker import process_guard
from mango_worker.tools.base import Cancel, ToolResult
from mango_worker.tools.toolset import Toolset
from tests.unit.worker.stub_api import StubApi

Run = Callable[..., ToolResult]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
def tools(workspace: Path) -> Iterator[Toolset]:
    process_guard.adopt_orphans()
    toolset = Toolset(str(workspace))
    yield toolset
    toolset.close()


@pytest.fixture
def run(tools: Toolset) -> Run:
    """Call a tool: `run("bash", command="true")`; `cancel` may be given."""

    def call(name: str, cancel: Cancel | None = None, **arguments: Any) -> ToolResult:
        return tools.run(name, arguments, cancel or Cancel())

    return call


@pytest.fixture
def stub() -> Iterator[StubApi]:
    with StubApi() as api:
        yield api


def text_of(result: ToolResult) -> str:
    """The text of a result that must be valid JSON text in UTF-8."""
    (block,) = result.content
    assert block["type"] == "text"
    block["text"].encode("utf-8")
    return str(block["text"])
