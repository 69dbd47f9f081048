"""AWS's own checkers have nothing to say about the template and the state machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mango_local.deploy import project, tools
from mango_local.deploy.errors import DeployFailed

CHECKERS = tools.Tool("cfn-lint", ("cfn-lint==1.58.0",))


def program(tool: tools.Tool, name: str) -> str:
    """From the path, else from an environment of its own; without either the test is skipped, but not in CI."""
    found = shutil.which(name)
    if found is not None:
        return found
    try:
        return str(tools.program(tool, name))
    except DeployFailed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{name} cannot be had: {error}")


def checked(command: list[str], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    settings = {"SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1", "HOME": str(tmp_path)}
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings}, cwd=project.root())


def test_cfn_lint(tmp_path: Path) -> None:
    done = checked([program(CHECKERS, "cfn-lint"), str(project.template())], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_sam_validate(tmp_path: Path) -> None:
    if shutil.which("sam") is None and not (tools.cache_folder()).exists():
        pytest.skip("sam is not installed")
    command = [program(tools.SAM_CLI, "sam"), "validate", "--lint", "--template", str(project.template())]
    done = checked([*command, "--region", "us-east-1"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_state_is_reached_and_leads_on() -> None:
    """cfn-lint does not look into the machine."""
    machine = json.loads(project.machine().read_text("utf-8"))
    states = machine["States"]
    following = {name: set(targets(state)) for name, state in states.items()}
    assert {target for each in following.values() for target in each} <= states.keys()
    reached, waiting = set(), [machine["StartAt"]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += following[name]
    assert reached == states.keys()
    ends = {name for name, state in states.items() if state["Type"] in ("Succeed", "Fail") or state.get("End")}
    assert ends and all(each or name in ends for name, each in following.items())


def targets(state: dict[str, object]) -> list[str]:
    found = [state.get("Next"), state.get("Default")]
    for key in ("Choices", "Catch"):
        rules = state.get(key)
        if isinstance(rules, list):
            found += [rule["Next"] for rule in rules]
    return [each for each in found if isinstance(each, str)]


def test_lambdas_passing_errors_are_tried_again() -> None:
    states = json.loads(project.machine().read_text("utf-8"))["States"]
    for name in ("Round", "Trouble"):
        named = {error for each in states[name]["Retry"] for error in each["ErrorEquals"]}
        passing = {"Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException"}
        assert "States.ALL" in named or passing | {"Lambda.TooManyRequestsException"} <= named
