"""`mango deploy` to an AWS account, by the `sam` command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mango_local.deploy import project
from mango_local.deploy.errors import DeployFailed

REMEDY = "install it with `pipx install aws-sam-cli` (https://docs.aws.amazon.com/serverless-application-model/)"


def find_sam() -> str:
    """The `sam` command. Raises `DeployFailed` with what to do where there is none."""
    beside = Path(sys.executable).parent / "sam"
    found = str(beside) if beside.exists() else shutil.which("sam")
    if found is None:
        raise DeployFailed(f"deploying to AWS needs the command sam: {REMEDY}; on an emulator: mango deploy --to local")
    return found


def summary(template: Mapping[str, Any]) -> list[str]:
    """What the stack will hold, a line for each kind of resource."""
    counts = Counter(str(each["Type"]) for each in template["Resources"].values())
    return [f"{number:4} {kind}" for kind, number in sorted(counts.items())]


def account(region: str) -> str:
    """The account that the credentials belong to. Raises `DeployFailed` where they do not work."""
    import boto3

    try:
        return str(boto3.client("sts", region_name=region).get_caller_identity()["Account"])
    except (ClientError, BotoCoreError) as error:
        raise DeployFailed(f"AWS does not know who you are: {error}; run `aws configure`, or set AWS_PROFILE") from None


def deploy(sam: str, stack: str, region: str, parameters: Sequence[str]) -> None:
    """Builds and deploys. Raises `DeployFailed` when sam does; it has said why."""
    build = project.root() / ".aws-sam"
    _run([sam, "build", "--template-file", str(project.template()), "--build-dir", str(build), "--region", region])
    command = [sam, "deploy", "--template-file", str(build / "template.yaml"), "--stack-name", stack]
    command += ["--region", region, "--resolve-s3", "--s3-prefix", stack, "--capabilities", "CAPABILITY_NAMED_IAM"]
    command += ["--no-fail-on-empty-changeset", "--no-confirm-changeset"]
    if parameters:
        command += ["--parameter-overrides", *parameters]
    _run(command)


def outputs(stack: str, region: str) -> dict[str, str]:
    """The outputs of a deployed stack. Raises `DeployFailed` if there is none."""
    import boto3

    try:
        found: Any = boto3.client("cloudformation", region_name=region).describe_stacks(StackName=stack)["Stacks"][0]
    except (ClientError, BotoCoreError) as error:
        raise DeployFailed(f"the stack {stack} cannot be read in {region}: {error}") from None
    return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}


def _run(command: list[str]) -> None:
    # sam calls back for each function's package; MANGO tells functions/Makefile whom.
    mango = Path(sys.executable).parent / "mango"
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "MANGO": str(mango)}
    if subprocess.run(command, env=environment, cwd=project.root()).returncode:
        raise DeployFailed(f"{' '.join(command[:2])} failed")
