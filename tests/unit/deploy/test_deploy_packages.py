"""Packages hold what their functions import and nothing else, and are the same each time."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from mango_local.deploy.content import wanted
from mango_local.deploy.imports import reachable
from mango_local.deploy.package import Package, build
from mango_local.deploy.plan import FUNCTIONS, function
from mango_local.deploy.project import sources
from mango_local.deploy.targets import this_interpreter

CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
import importlib
module = importlib.import_module(sys.argv[2])
assert callable(getattr(module, "handler", None) or module.serve)
from mango.aws.clients import AwsSettings, Clients
clients = Clients(AwsSettings(access_key_id="a", secret_access_key="b"))
for name in sys.argv[3:]:
    clients.other(name)
outside = [name for name, each in sys.modules.items()
           if (getattr(each, "__file__", None) or "").find("site-packages") >= 0]
assert not outside, outside
"""

MODELS = """
import sys
sys.path.insert(0, sys.argv[1])
import mango.model.scripts.echo
from anthropic.lib.aws._auth import get_auth_headers
from anthropic.lib.bedrock._stream_decoder import AWSEventStreamDecoder, get_response_stream_shape
given = dict(aws_access_key="a", aws_secret_key="b", aws_session_token=None, region="us-east-1", profile=None)
headers = get_auth_headers(method="POST", url="https://bedrock.example/", headers={}, data="", service_name="bedrock",
                           **given)
assert "Authorization" in headers
assert AWSEventStreamDecoder() and get_response_stream_shape()
"""
"""What the library that calls models imports, and reads, no sooner than it needs it."""


@pytest.fixture(scope="module")
def packages() -> dict[str, Package]:
    return {each.function.name: each for each in build(FUNCTIONS, this_interpreter())}


@pytest.mark.parametrize("name", [each.name for each in FUNCTIONS])
def test_a_package_needs_nothing_else(packages: dict[str, Package], name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(BytesIO(packages[name].zipped())) as archive:
        archive.extractall(tmp_path)
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", CHECK, str(tmp_path), function(name).module]
    command += ["dynamodb", "s3", "sqs", "stepfunctions", "secretsmanager"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_round_can_call_a_model(packages: dict[str, Package], tmp_path: Path) -> None:
    packages["RoundFunction"].unpack(tmp_path)
    command = [sys.executable, "-I", "-S", "-c", MODELS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env={"AWS_REGION": "us-east-1"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [each.name for each in FUNCTIONS])
def test_what_a_function_does_not_import_is_left_out(packages: dict[str, Package], name: str) -> None:
    tops = {path.split("/")[0] for path in packages[name].files}
    assert not tops & {"docker", "uvicorn", "typer", "rich", "roto_aws", "pip", "setuptools", "pytest", "mypy_boto3_s3"}
    assert ("anthropic" in tops) == (name == "RoundFunction")
    assert not [path for path in packages[name].files if path.startswith(("mango/memory", "mango_local"))]


def test_the_same_files_give_the_same_bytes(packages: dict[str, Package]) -> None:
    again = build([function("TroubleFunction")], this_interpreter())[0]
    first = packages["TroubleFunction"]
    assert again.files.keys() == first.files.keys()
    assert hashlib.sha256(again.zipped()).digest() == hashlib.sha256(first.zipped()).digest()


def test_modules_come_compiled(packages: dict[str, Package]) -> None:
    files = packages["ApiFunction"].files
    tag = sys.implementation.cache_tag
    assert f"mango/handlers/__pycache__/api.{tag}.pyc" in files
    orphans = [name for name in files if name.endswith(".pyc") and source_of(name) not in files]
    assert orphans == []


def source_of(compiled: str) -> str:
    folder, _, name = compiled.rpartition("__pycache__/")
    return f"{folder}{name.split('.')[0]}.py"


def test_packages_are_well_below_lambdas_limit(packages: dict[str, Package]) -> None:
    assert {name for name, each in packages.items() if each.size > 100_000_000} == set()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("boto3/session.py", True),
        ("boto3/data/s3/2006-03-01/resources-1.json", False),
        ("botocore/data/endpoints.json", True),
        ("botocore/data/s3/2006-03-01/service-2.json.gz", True),
        ("botocore/data/ec2/2016-11-15/service-2.json.gz", False),
        ("wrapt/_wrappers.c", False),
        ("pydantic-2.0.dist-info/METADATA", True),
        ("pydantic-2.0.dist-info/RECORD", False),
        ("../../../bin/jp.py", False),
        ("anyio/__pycache__/x.cpython-311.pyc", False),
        ("six.py", True),
    ],
)
def test_files_that_functions_read(name: str, kept: bool) -> None:
    assert wanted(name) is kept


def test_imports_are_followed_wherever_they_stand(tmp_path: Path) -> None:
    files = {
        "mango/__init__.py": "",
        "mango/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import typeonly\n"
        "    from mango import c\ndef later():\n    from mango.b import thing\n",
        "mango/b/__init__.py": "from . import inner\nthing = 1\n",
        "mango/b/inner.py": "import requests.adapters\nimport json\n",
        "mango/c.py": "",
        "mango/plug/__init__.py": "",
        "mango/plug/one.py": "import yaml\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = reachable(["mango.a"], tmp_path)
    assert sorted(found.modules) == ["mango", "mango.a", "mango.b", "mango.b.inner"]
    assert found.foreign == {"requests"}
    assert reachable(["mango.a"], tmp_path, ["mango.plug"]).foreign == {"requests", "yaml"}


def test_the_api_never_sees_a_model() -> None:
    found = reachable(["mango.handlers.api"], sources())
    assert not found.foreign & {"anthropic", "httpx2", "docker", "starlette", "uvicorn"}
