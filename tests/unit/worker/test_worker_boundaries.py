"""What the worker may import, and what its image is made of."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
PACKAGE = PROJECT / "worker" / "mango_worker"
REQUIREMENTS = PROJECT / "infra" / "docker" / "worker-requirements.txt"


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name.split(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports(path: Path) -> None:
    outside = {name for name in imports(path) if name not in sys.stdlib_module_names} - {"mango_worker"}
    allowed = {"httpx", "typer", "rich"}
    if path.parent.name == "supervisor":
        allowed |= {"docker", "requests"}
    if path.name == "bell.py":
        allowed |= {"boto3", "botocore", "mypy_boto3_sqs"}
    assert outside <= allowed


@pytest.mark.parametrize("module", ["item.process", "cli", "supervisor.main"])
def test_the_item_process_loads_nothing_that_its_image_lacks(module: str) -> None:
    script = f"import sys, mango_worker.{module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"docker", "requests", "boto3", "anthropic", "mango", "mango_local"} & set(done.stdout.split())


def test_the_image_has_the_versions_that_the_project_names() -> None:
    wanted = [line for line in REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert set(wanted) <= set(project)
