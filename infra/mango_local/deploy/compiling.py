"""Modules compiled in advance: Lambda cannot keep what it compiles, and would do it again at every cold start."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from mango_local.deploy.errors import DeployFailed
from mango_local.deploy.targets import Target


def interpreter(target: Target) -> str | None:
    """An interpreter of the target's version on this machine, or None."""
    if target.python == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{target.python}")
    if found is None:
        return None
    # What is found may be a switch between versions that finds none: the interpreter itself tells where it is.
    asked = [found, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"]
    version, _, itself = subprocess.run(asked, capture_output=True, text=True).stdout.strip().partition(" ")
    return itself if version == target.python else None


def compiled(files: Mapping[str, Path | bytes], target: Target, scratch: Path) -> dict[str, bytes]:
    """What the modules among the files compile to, by its place; empty without an interpreter of that version."""
    program = interpreter(target)
    if program is None:
        return {}
    modules = {name: content for name, content in files.items() if name.endswith(".py")}
    for name, content in modules.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    child = Path(__file__).with_name("compile_child.py")
    # Constant sets are written in the order of their hashes.
    done = subprocess.run(
        [program, "-S", str(child), str(scratch)], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True
    )
    if done.returncode:
        raise DeployFailed(f"the modules cannot be compiled: {done.stderr.strip()[-500:]}")
    found = {}
    for path in sorted(scratch.rglob("__pycache__/*.pyc")):
        found[path.relative_to(scratch).as_posix()] = path.read_bytes()
    return found
