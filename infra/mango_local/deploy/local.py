"""`mango deploy --to local`: the whole product on an emulator."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from mango.model.factory import ModelSettings
from mango_local.access import Key
from mango_local.deploy import endpoint, ministack, package, state, tools, translation
from mango_local.deploy.emulated import localized
from mango_local.deploy.endpoint import Emulator
from mango_local.deploy.errors import DeployFailed
from mango_local.deploy.first_key import give_first_key
from mango_local.deploy.plan import FUNCTIONS
from mango_local.deploy.stack import Stack
from mango_local.deploy.targets import in_containers, this_interpreter

READY_SECONDS = 60.0
STAGE = "local"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Attributes:
        folder: where the deployment is remembered.
        port: for a MiniStack that has to be started; None takes the usual one, or any.
        model: which model client the rounds use, from the environment.
        parameters: of the template, besides those that follow from the model.
    """

    folder: Path
    stack: str
    port: int | None
    model: ModelSettings
    parameters: Mapping[str, str] = field(default_factory=dict)


def deploy(wanted: Wanted, key: Key, say: Say) -> state.Deployment:
    """Creates or updates the deployment, and waits until it answers. Raises `DeployFailed` and `KeyRefused`."""
    emulator, known = _emulator(wanted, say)
    bucket = f"{wanted.stack}-packages"
    _ensure_bucket(emulator, bucket)
    code = _upload(emulator, bucket, say)
    template = localized(
        translation.read_template(),
        code,
        this_interpreter() if emulator.ministack else in_containers(),
        _variables(emulator),
        own_runtime=emulator.ministack,
    )
    parameters = {"Stage": STAGE, **_model_parameters(wanted, emulator), **wanted.parameters}
    translated = translation.translate(template, parameters, emulator.region)
    stack = Stack(emulator.client("cloudformation"), wanted.stack)
    say(f"stack {wanted.stack} {stack.apply(_template_url(emulator, bucket, translated), parameters)}")
    known.outputs = stack.outputs()
    known.api_url = emulator.api_url(known.outputs["ApiId"], STAGE)
    known.write(wanted.folder)
    _complete_table(emulator, known.outputs["TableName"])
    give_first_key(emulator, known.outputs["TableName"], key)
    _wait(known.api_url)
    return known


def undeploy(folder: Path, say: Say) -> bool:
    """Removes the deployment that the folder remembers, with its data; False if there is none."""
    known = state.read(folder)
    if known is None:
        return False
    if known.pid:
        if ministack.end(known.pid, known.since):
            say("MiniStack ended, and all it held with it")
        ministack.clean(folder)
    else:
        _remove(known, say)
    state.forget(folder)
    return True


def _remove(known: state.Deployment, say: Say) -> None:
    """On an emulator of the user's own, what the template retains is removed too."""
    emulator = endpoint.connect(known.endpoint)
    Stack(emulator.client("cloudformation"), known.stack).delete()
    for bucket in (known.outputs.get("BucketName", ""), f"{known.stack}-packages"):
        if bucket:
            _empty(emulator.client("s3"), bucket)
    try:
        emulator.client("dynamodb").delete_table(TableName=known.outputs.get("TableName", "-"))
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise DeployFailed(f"the table cannot be deleted: {error}") from None
    say(f"stack {known.stack} deleted from {known.endpoint}, with its table and bucket")


def _empty(s3: Any, bucket: str) -> None:
    try:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for item in page.get("Contents", []):
                s3.delete_object(Bucket=bucket, Key=item["Key"])
        s3.delete_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise DeployFailed(f"the bucket {bucket} cannot be deleted: {error}") from None


def _emulator(wanted: Wanted, say: Say) -> tuple[Emulator, state.Deployment]:
    """The emulator that the environment names, else the MiniStack of last time, else a new one."""
    url = endpoint.configured()
    if url is not None:
        emulator = endpoint.connect(url)
        return emulator, state.Deployment(url, wanted.stack, emulator.region)
    known = state.read(wanted.folder)
    if known is not None and ministack.alive(known.pid, known.since):
        return endpoint.connect(known.endpoint), known
    started = ministack.MiniStack(wanted.folder)
    started.start(wanted.port)
    say(f"MiniStack started at {started.url}")
    emulator = endpoint.connect(started.url)
    known = state.Deployment(started.url, wanted.stack, emulator.region, pid=started.pid, since=started.since)
    known.write(wanted.folder)  # at once: whatever fails from here on, `mango undeploy` ends it
    return emulator, known


def _upload(emulator: Emulator, bucket: str, say: Say) -> dict[str, dict[str, str]]:
    """Packages the functions and puts them into the bucket; says how large they are."""
    s3 = emulator.client("s3")
    code = {}
    for name, (data, size) in packages(emulator.ministack).items():
        key = f"{name}-{hashlib.sha256(data).hexdigest()[:16]}.zip"
        s3.put_object(Bucket=bucket, Key=key, Body=data)
        say(f"{name:16} {len(data) / 1e6:5.1f} MB zipped, {size / 1e6:5.1f} MB unpacked")
        code[name] = {"Bucket": bucket, "Key": key}
    return code


@cache
def packages(for_ministack: bool) -> dict[str, tuple[bytes, int]]:
    """Each function's archive and its size unpacked, by name; made once a process."""
    target, extra = in_containers(), None
    if for_ministack:
        target = this_interpreter()
        extra = package.runtime_client(tools.site_packages(tools.RUNTIME_CLIENT))
        extra["bootstrap"] = Path(__file__).with_name("bootstrap")
    return {each.function.name: (each.zipped(), each.size) for each in package.build(FUNCTIONS, target, extra)}


def _ensure_bucket(emulator: Emulator, bucket: str) -> None:
    s3 = emulator.client("s3")
    place: Any = {}
    if emulator.region != endpoint.DEFAULT_REGION:
        place = {"CreateBucketConfiguration": {"LocationConstraint": emulator.region}}
    try:
        s3.create_bucket(Bucket=bucket, **place)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
            raise DeployFailed(f"the bucket {bucket} cannot be made: {error}") from None


def _template_url(emulator: Emulator, bucket: str, template: dict[str, Any]) -> str:
    """CloudFormation takes a template of this size only from S3."""
    emulator.client("s3").put_object(Bucket=bucket, Key="template.json", Body=json.dumps(template).encode())
    return f"{emulator.url}/{bucket}/template.json"


def _variables(emulator: Emulator) -> dict[str, str]:
    common = {"POWERTOOLS_TRACE_DISABLED": "true"}  # nobody listens for traces there
    if not emulator.ministack:
        return common
    return {**common, "AWS_ENDPOINT_URL": emulator.url, "MANGO_EMULATOR_PYTHON": sys.executable}


def _model_parameters(wanted: Wanted, emulator: Emulator) -> dict[str, str]:
    model = wanted.model
    provider = f"scripted:{model.script}" if model.kind == "scripted" else model.kind
    parameters = {"ModelProvider": provider, "OfflineThinkSeconds": f"{model.think_seconds:g}"}
    if model.kind == "messages":
        parameters |= {"ModelBaseUrl": model.base_url, "ModelAuth": model.auth}
        if model.api_key:
            parameters["ModelSecretArn"] = _secret(emulator, f"{wanted.stack}-model", model.api_key)
    return parameters


def _secret(emulator: Emulator, name: str, value: str) -> str:
    secrets = emulator.client("secretsmanager")
    try:
        return str(secrets.create_secret(Name=name, SecretString=value)["ARN"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceExistsException":
            raise DeployFailed(f"the model's key cannot be kept: {error}") from None
    return str(secrets.put_secret_value(SecretId=name, SecretString=value)["ARN"])


def _complete_table(emulator: Emulator, table: str) -> None:
    """MiniStack makes tables without the time to live that the template gives them."""
    dynamodb = emulator.client("dynamodb")
    known = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    if known.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
        wanted = {"Enabled": True, "AttributeName": "ttl"}
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=wanted)


def _wait(api_url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not endpoint.answers(f"{api_url}/readyz"):
        if time.monotonic() > deadline:
            raise DeployFailed(f"the API does not get ready within {READY_SECONDS:.0f} s: {api_url}/readyz")
        time.sleep(0.1)
