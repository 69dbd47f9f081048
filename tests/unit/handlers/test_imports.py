"""What a function's start must not drag along."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("anthropic", "docker", "moto", "pynamodb", "requests", "roto", "starlette", "typer", "uvicorn")
MODEL = ("httpx", "httpx2", "mango.model")


def imported(module: str) -> list[str]:
    """All modules that importing this one loads."""
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    names: list[str] = json.loads(done.stdout)
    return names


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("mango.handlers.api", (*HEAVY, *MODEL, "aws_xray_sdk", "boto3")),
        ("mango.handlers.trouble", (*HEAVY, *MODEL, "mango.api")),
        ("mango.handlers.sweep", (*HEAVY, *MODEL, "mango.api")),
        ("mango.handlers.round", (*HEAVY, "mango.api")),
    ],
)
def test_a_function_imports_only_what_it_needs(module: str, forbidden: tuple[str, ...]) -> None:
    loaded = imported(module)
    assert module in loaded
    assert [
        name for name in loaded if name.startswith(tuple(f"{one}." for one in forbidden)) or name in forbidden
    ] == []
