"""Tools in environments of their own, made when they are first needed.

MiniStack pins another botocore and the SAM translator another pydantic than Mango uses, so neither can share its
environment. What was made is kept in the user's cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from mango_local.deploy.errors import DeployFailed

INSTALL_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Tool:
    """Packages that are installed together, by exact version: what is tested is what runs."""

    name: str
    requirements: tuple[str, ...]


MINISTACK = Tool("ministack", ("ministack==1.5.33",))
SAM_TRANSLATOR = Tool("sam-translator", ("aws-sam-translator==1.115.0", "PyYAML==6.0.4"))
SAM_CLI = Tool("sam-cli", ("aws-sam-cli==1.170.0",))
RUNTIME_CLIENT = Tool("runtime-client", ("awslambdaric==4.2.2",))
"""AWS's own loop around a Python handler. On AWS it is part of the runtime."""


def cache_folder() -> Path:
    """Where tools are kept."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "mango" / "tools"


def environment(tool: Tool) -> Path:
    """The tool's virtual environment, made if it is missing. Raises `DeployFailed` if it cannot be installed."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256("\n".join((version, *tool.requirements)).encode()).hexdigest()[:12]
    folder = cache_folder() / f"{tool.name}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _make(tool, folder)
    return folder


def program(tool: Tool, name: str) -> Path:
    """A program of the tool."""
    return environment(tool) / "bin" / name


def site_packages(tool: Tool) -> Path:
    """Where the tool's modules are."""
    return next((environment(tool) / "lib").glob("python*/site-packages"))


def _make(tool: Tool, folder: Path) -> None:
    print(f"installing {', '.join(tool.requirements)}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True, symlinks=True)
    command = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "--quiet"]
    command += ["install", *tool.requirements]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise DeployFailed(f"installing {tool.name} took longer than {INSTALL_SECONDS} s") from None
    if done.returncode:
        raise DeployFailed(f"{tool.name} cannot be installed: {done.stderr.strip()[-500:]}")
    (folder / "complete").touch()
