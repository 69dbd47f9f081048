"""From template.yaml to what CloudFormation reads, by SAM's own translator."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mango_local.deploy import project, tools
from mango_local.deploy.errors import DeployFailed

Json = dict[str, Any]

POLICIES = {
    "AWSLambdaBasicExecutionRole": "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole",
    "AWSXrayWriteOnlyAccess": "arn:aws:iam::aws:policy/AWSXrayWriteOnlyAccess",
    "AWSXRayDaemonWriteAccess": "arn:aws:iam::aws:policy/AWSXRayDaemonWriteAccess",
}
"""The managed policies that SAM may look up. The template declares its roles itself and uses none of them."""


def read_template() -> Json:
    """template.yaml, with CloudFormation's short forms written out."""
    return _child(["read", str(project.template())], "")


def translate(template: Json, parameters: Mapping[str, str], region: str) -> Json:
    """The SAM template as CloudFormation.

    Raises:
        DeployFailed: the translator refuses it.
    """
    request = {"template": template, "parameters": {**parameters, "AWS::Region": region}, "policies": POLICIES}
    return _child(["translate"], json.dumps(request), region)


def _child(arguments: list[str], data: str, region: str = "us-east-1") -> Json:
    script = Path(__file__).with_name("sam_child.py")
    command = [str(tools.program(tools.SAM_TRANSLATOR, "python")), "-I", str(script), *arguments]
    # The translator asks boto3 which partition the region belongs to.
    environment = {"AWS_DEFAULT_REGION": region, "AWS_REGION": region}
    done = subprocess.run(command, input=data, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise DeployFailed(f"template.yaml cannot be translated: {done.stderr.strip()[-1500:]}")
    answer: Json = json.loads(done.stdout)
    return answer
