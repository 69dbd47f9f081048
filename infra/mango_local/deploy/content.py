"""The files of packages of others, without what no function reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath

from mango_local.deploy.errors import DeployFailed
from mango_local.deploy.plan import AWS_SERVICES
from mango_local.deploy.targets import Target

GLIBC = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")
"""Wheels that run on Amazon Linux 2023."""
_ENDINGS = {".pyc", ".pyi", ".pxd", ".pyx", ".c", ".h"}
_FOLDERS = {"__pycache__", "bin", "tests", "test", "examples"}
_OF_METADATA = {"METADATA"}  # packages ask for their own version


def files(distributions: Mapping[str, Distribution], target: Target, scratch: Path) -> dict[str, Path]:
    """By their place in the package. `scratch` holds what has to be fetched for another target."""
    if target.here:
        return dict(_installed(distributions.values()))
    fetched = _fetch(distributions, target, scratch)
    return {name: fetched / name for name in _names(fetched) if wanted(name)}


def wanted(name: str) -> bool:
    """Whether a function may read a file of a package."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.suffix in _ENDINGS or _FOLDERS & set(path.parts[:-1]):
        return False
    if path.parts[0].endswith((".dist-info", ".egg-info")):
        return path.name in _OF_METADATA
    if path.parts[:2] == ("boto3", "data"):
        return False  # resources, of which nothing of ours is made
    if path.parts[:2] == ("botocore", "data"):
        return len(path.parts) == 3 or path.parts[2] in AWS_SERVICES
    return True


def _installed(distributions: Iterable[Distribution]) -> Iterator[tuple[str, Path]]:
    for each in distributions:
        if each.files is None:
            raise DeployFailed(f"{each.metadata['Name']} was installed in a way that does not say which files it has")
        for path in each.files:
            if wanted(path.as_posix()):
                yield path.as_posix(), Path(str(path.locate()))


def _fetch(distributions: Mapping[str, Distribution], target: Target, scratch: Path) -> Path:
    """Installs the very versions that are installed here, built for the target."""
    folder = scratch / f"{target.python}-{target.machine}"
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--quiet", "install"]
    command += ["--no-deps", "--only-binary=:all:", "--no-compile", "--target", str(folder)]
    command += ["--implementation", "cp", "--python-version", target.python]
    command += [part for tag in GLIBC for part in ("--platform", f"{tag}_{target.machine}")]
    command += [f"{name}=={each.version}" for name, each in distributions.items()]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise DeployFailed(
            f"packages for Python {target.python} on {target.machine} cannot be had: {done.stderr.strip()[-600:]}"
        )
    return folder


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix()
