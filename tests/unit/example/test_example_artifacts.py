"""The result directory, and what the example takes from an agent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from coding_agent.artifacts import MAX_BYTES, SOURCE, TESTS, Artifacts, Pair, accept, fixture, read_pair
from coding_agent.failures import ExampleFailed

GOOD = Pair(b"source", b"tests")


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "results", (os.getuid(), os.getgid()))


@pytest.fixture
def workspace(artifacts: Artifacts) -> Path:
    return artifacts.stage("sesn_1", GOOD)


def test_reads_what_it_staged(workspace: Path) -> None:
    assert read_pair(workspace) == GOOD
    assert (workspace / SOURCE).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", [SOURCE, TESTS])
def test_links_pipes_directories_and_missing_files_are_refused(workspace: Path, name: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"a secret")
    path = workspace / name
    path.unlink()
    with pytest.raises(ExampleFailed, match=f"{name} .*No such file"):
        read_pair(workspace)
    path.symlink_to(elsewhere)
    with pytest.raises(ExampleFailed, match=f"{name} .*symbolic links"):
        read_pair(workspace)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ExampleFailed, match=f"{name} .*not a regular file"):
        read_pair(workspace)
    path.unlink()
    path.mkdir()
    with pytest.raises(ExampleFailed, match=f"{name} .*not a regular file"):
        read_pair(workspace)


def test_a_workspace_that_became_a_link_is_refused(workspace: Path) -> None:
    workspace.rename(workspace.with_name("moved"))
    workspace.symlink_to(workspace.with_name("moved"))
    with pytest.raises(ExampleFailed, match="cannot be read"):
        read_pair(workspace)


def test_large_files_are_refused(workspace: Path) -> None:
    (workspace / SOURCE).write_bytes(b"#" * MAX_BYTES)
    assert len(read_pair(workspace).source) == MAX_BYTES
    (workspace / SOURCE).write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ExampleFailed, match="larger than"):
        read_pair(workspace)


def test_only_a_changed_source_with_unchanged_tests_is_accepted() -> None:
    original = fixture()
    assert accept(original, Pair(b"repaired", original.tests)) == b"repaired"
    with pytest.raises(ExampleFailed, match=r"changed test_invoice\.py"):
        accept(original, Pair(b"repaired", original.tests + b"\n"))
    with pytest.raises(ExampleFailed, match=r"left invoice\.py as it was"):
        accept(original, original)


def test_every_run_has_a_directory_of_its_own(artifacts: Artifacts) -> None:
    other = Artifacts(artifacts.folder.parent, (os.getuid(), os.getgid()))
    assert other.folder != artifacts.folder
    artifacts.save_json("resources.json", {"session": "sesn_1"})
    assert json.loads((artifacts.folder / "resources.json").read_text()) == {"session": "sesn_1"}
    assert [path.name for path in artifacts.folder.iterdir()] == ["resources.json"]


@pytest.mark.parametrize("session_id", ["", ".", "..", "../up", "/etc", "a/b"])
def test_a_session_id_cannot_lead_out_of_the_directory(artifacts: Artifacts, session_id: str) -> None:
    with pytest.raises(ExampleFailed, match="cannot name a directory"):
        artifacts.workspace(session_id)
