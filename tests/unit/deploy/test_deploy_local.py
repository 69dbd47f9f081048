"""Where a local deployment goes, what is remembered of it, and what ends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mango_local.cli import app
from mango_local.deploy import endpoint, ministack, state
from mango_local.deploy.endpoint import Emulator
from mango_local.deploy.errors import DeployFailed
from mango_local.guard import started


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "LOCALSTACK_HOST", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:4566/"}, "http://127.0.0.1:4566"),
        ({"LOCALSTACK_HOST": "stack.example"}, "http://stack.example:4566"),
        ({"LOCALSTACK_HOST": "stack.example:5000"}, "http://stack.example:5000"),
        ({"AWS_ENDPOINT_URL": "https://a:1", "LOCALSTACK_HOST": "b"}, "https://a:1"),
    ],
)
def test_the_environment_names_the_emulator(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert endpoint.configured() == expected


@pytest.mark.parametrize("url", ["127.0.0.1:4566", "https://dynamodb.us-east-1.amazonaws.com", "ftp://a"])
def test_addresses_that_are_no_emulator(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(DeployFailed):
        endpoint.configured()


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeployFailed, match="nothing answers"):
        endpoint.connect("http://127.0.0.1:1")


def test_clients_go_to_the_address_as_given() -> None:
    client = Emulator("http://127.0.0.1:1", ministack=True, region="eu-west-1").client("stepfunctions")
    assert client.meta.endpoint_url == "http://127.0.0.1:1"
    assert client.meta.region_name == "eu-west-1"


def test_a_deployment_is_remembered(tmp_path: Path) -> None:
    folder = tmp_path / "deployment"
    assert state.read(folder) is None
    kept = state.Deployment("http://a:1", "mango", "us-east-1", "http://a:1/x", {"TableName": "t"}, 7, "8")
    kept.write(folder)
    assert state.read(folder) == kept
    lines = (folder / state.GATEWAY_FILE).read_text().splitlines()
    assert "MANGO_API_URL=http://a:1/x" in lines and "MANGO_TABLE=t" in lines
    state.forget(folder)
    assert state.read(folder) is None


def test_a_damaged_memory_is_told(tmp_path: Path) -> None:
    (tmp_path / state.FILE).write_text('{"what": 1}')
    with pytest.raises(DeployFailed, match="damaged"):
        state.read(tmp_path)


def test_only_the_very_process_is_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    since = started(child.pid)
    assert since is not None
    assert not ministack.end(child.pid, f"{since}0")
    assert child.poll() is None
    assert ministack.end(child.pid, since)
    assert not ministack.alive(child.pid, since)
    assert child.stdin is not None
    child.stdin.close()
    child.wait()


def test_undeploying_nothing(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["undeploy", "--deployment", str(tmp_path)])
    assert done.exit_code == 0
    assert "no local deployment" in done.output


def test_without_sam_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = CliRunner().invoke(app, ["deploy"])
    assert done.exit_code == 1
    assert "pipx install aws-sam-cli" in done.output


def test_parameters_are_pairs() -> None:
    done = CliRunner().invoke(app, ["deploy", "--to", "local", "--parameter", "Stage"])
    assert done.exit_code == 1
    assert "NAME=VALUE" in done.output
