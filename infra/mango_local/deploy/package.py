"""Packages of functions: the same files give the same bytes, on any day."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path, PurePosixPath

from mango_local.deploy import project
from mango_local.deploy.compiling import compiled
from mango_local.deploy.content import files, wanted
from mango_local.deploy.distributions import needed
from mango_local.deploy.imports import reachable
from mango_local.deploy.plan import FUNCTIONS, Function
from mango_local.deploy.targets import Target

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can hold
_PLAIN, _PROGRAM = 0o100644 << 16, 0o100755 << 16


@dataclass(frozen=True, slots=True)
class Package:
    """A function's files by their place, and the packages of others among them with their versions."""

    function: Function
    files: Mapping[str, Path | bytes]
    holds: Mapping[str, str]

    @property
    def size(self) -> int:
        """Bytes before they are compressed; Lambda takes 250 MB."""
        return sum(len(each) if isinstance(each, bytes) else each.stat().st_size for each in self.files.values())

    def zipped(self) -> bytes:
        """As an archive."""
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for name, content in sorted(self.files.items()):
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = _PROGRAM if name in PROGRAMS else _PLAIN
                archive.writestr(entry, content if isinstance(content, bytes) else content.read_bytes())
        return buffer.getvalue()

    def unpack(self, folder: Path) -> None:
        """As files."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                shutil.copyfile(content, path)
            path.chmod(0o755 if name in PROGRAMS else 0o644)


PROGRAMS = {"bootstrap", *(name for each in FUNCTIONS for name in each.programs)}


def build(
    functions: Iterable[Function], target: Target, extra: Mapping[str, Path | bytes] | None = None
) -> list[Package]:
    """A package for each function; `extra` files are put into each."""
    with tempfile.TemporaryDirectory(prefix="mango-package-") as scratch:
        packages = [_collect(each, target, extra or {}, Path(scratch) / "fetched") for each in functions]
        every = {name: content for each in packages for name, content in each.files.items()}
        modules = compiled(every, target, Path(scratch) / "compiled")
    return [_with_compiled(each, modules) for each in packages]


def _collect(function: Function, target: Target, extra: Mapping[str, Path | bytes], scratch: Path) -> Package:
    sources = project.sources()
    imports = reachable([function.module], sources, function.loads)
    distributions = needed({*imports.foreign, *function.libraries}, target)
    content: dict[str, Path | bytes] = {}
    for name, path in files(distributions, target, scratch).items():
        content[name] = path if target.here else path.read_bytes()  # what was fetched is removed at the end
    for path in (*imports.modules.values(), *(sources / name for name in function.programs)):
        content[path.relative_to(sources).as_posix()] = path
    content.update(extra)
    return Package(function, content, {name: each.version for name, each in distributions.items()})


def _with_compiled(package: Package, modules: Mapping[str, bytes]) -> Package:
    folders = {}
    for name, content in modules.items():
        path = PurePosixPath(name)
        source = path.parent.parent / f"{path.name.split('.')[0]}.py"
        if source.as_posix() in package.files:
            folders[name] = content
    return replace(package, files={**package.files, **folders})


def runtime_client(site_packages: Path) -> dict[str, Path | bytes]:
    """The files of AWS's runtime client and of what it needs, from the environment it is installed in."""
    unneeded = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
    found: dict[str, Path | bytes] = {}
    for path in sorted(site_packages.rglob("*")):
        name = path.relative_to(site_packages).as_posix()
        if path.is_file() and not name.startswith(unneeded) and wanted(name):
            found[name] = path
    return found
