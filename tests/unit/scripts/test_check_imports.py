"""scripts/check-imports finds every arrow that points the wrong way, and every circle."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/check-imports"
FOLDER = {"mango": "functions/", "mango_worker": "worker/", "mango_local": "infra/"}


def load() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("check_imports", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # where dataclasses look for it
    loader.exec_module(module)
    return module


check_imports = load()


def violations(project: Path) -> list[str]:
    lines: list[str] = check_imports.check(project)
    return lines


def write(project: Path, module: str, source: str = "") -> None:
    """Writes a module, and an empty `__init__.py` for each package above it that has none."""
    parts = module.split(".")
    base = project / FOLDER.get(parts[0], "")
    for length in range(1, max(len(parts), 2)):
        package = base.joinpath(*parts[:length])
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
    if len(parts) > 1:
        base.joinpath(*parts).with_suffix(".py").write_text(source)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("mango.domain.a", "mango.domain.b"),
        ("mango.ports", "mango.domain.b"),
        ("mango.services.a", "mango.domain.b"),
        ("mango.services.a", "mango.ports"),
        ("mango.turn.a", "mango.services.b"),
        ("mango.api.routes.a", "mango.services.b"),
        ("mango.api.a", "mango.turn.b"),
        ("mango.stream.a", "mango.services.b"),
        ("mango.aws.a", "mango.ports"),
        ("mango.model.a", "mango.domain.b"),
        ("mango.memory.a", "mango.ports"),
        ("mango.handlers.a", "mango.aws.b"),
        ("mango.handlers.a", "mango.api.b"),
        ("mango_local.a", "mango.model.b"),
        ("mango_local.a", "mango"),
        ("mango_local.a", "mango_worker.transfer"),
        ("mango_worker.a", "mango_worker.transfer"),
        ("mango_worker.a", "mango_worker.b"),
        ("tests.unit.test_a", "mango.memory.b"),
        ("tests.unit.test_a", "mango_worker.b"),
        ("benchmarks.a", "mango_local.b"),
    ],
)
def test_allowed_arrows(tmp_path: Path, importer: str, imported: str) -> None:
    write(tmp_path, imported)
    write(tmp_path, importer, f"import {imported}\n")
    assert violations(tmp_path) == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("mango.domain.a", "mango.ports"),
        ("mango.domain.a", "mango.services.b"),
        ("mango.domain.a", "mango"),
        ("mango.ports", "mango.services.b"),
        ("mango.services.a", "mango.turn.b"),
        ("mango.services.a", "mango.aws.b"),
        ("mango.services.a", "mango.api.b"),
        ("mango.turn.a", "mango.model.b"),
        ("mango.turn.a", "mango.memory.b"),
        ("mango.api.a", "mango.stream.b"),
        ("mango.api.a", "mango.aws.b"),
        ("mango.stream.a", "mango.api.b"),
        ("mango.aws.a", "mango.services.b"),
        ("mango.aws.a", "mango.memory.b"),
        ("mango.memory.a", "mango.aws.b"),
        ("mango.model.a", "mango.turn.b"),
        ("mango.api.a", "mango.handlers.b"),
        ("mango.handlers.a", "mango_local.b"),
        ("mango.handlers.a", "mango_worker.b"),
        ("mango_local.a", "mango_worker.b"),
        ("mango_worker.a", "mango.domain.b"),
        ("mango_worker.a", "mango_local.b"),
        ("examples.coding.a", "mango.domain.b"),
        ("examples.coding.a", "mango_worker.b"),
        ("examples.coding.a", "mango_local.b"),
        ("mango_local.a", "tests.support.b"),
        ("mango.handlers.a", "benchmarks.b"),
    ],
)
def test_forbidden_arrows(tmp_path: Path, importer: str, imported: str) -> None:
    write(tmp_path, imported)
    write(tmp_path, importer, f"\nimport {imported}\n")
    (only,) = violations(tmp_path)
    folder = FOLDER.get(importer.partition(".")[0], "")
    assert only.startswith(f"{folder}{importer.replace('.', '/')}.py:2: ")
    assert f"({importer} imports {imported})" in only


@pytest.mark.parametrize(
    "statement",
    [
        "from mango.aws import table",
        "from mango.aws.table import Row",
        "from ..aws import table",
        "from ..aws.table import Row",
        "from .. import aws",
        "import os, mango.aws.table",
        "def late() -> None:\n    import mango.aws.table",
        "try:\n    import mango.aws.table\nexcept ImportError:\n    pass",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mango.aws.table import Row",
        "import typing\nif typing.TYPE_CHECKING:\n    pass\nelse:\n    import mango.aws.table",
    ],
)
def test_every_way_to_import_is_seen(tmp_path: Path, statement: str) -> None:
    write(tmp_path, "mango.aws.table", "class Row: ...\n")
    write(tmp_path, "mango.services.a", statement + "\n")
    (only,) = violations(tmp_path)
    assert "mango.services must not import mango.aws" in only


def test_a_package_without_a_place_is_a_violation(tmp_path: Path) -> None:
    write(tmp_path, "mango.domain.b")
    write(tmp_path, "mango.utilities.a", "import mango.domain.b\n")
    (only,) = violations(tmp_path)
    assert "mango.utilities.a belongs to no area" in only


def test_a_circle_is_shown_with_the_way_round(tmp_path: Path) -> None:
    write(tmp_path, "mango.domain.a", "from mango.domain import b\n")
    write(tmp_path, "mango.domain.b", "from mango.domain.c import C\n")
    write(tmp_path, "mango.domain.c", "def late() -> None:\n    from . import a\n")
    assert violations(tmp_path) == [
        "functions/mango/domain/a.py:1: import circle: "
        "mango.domain.a -> mango.domain.b -> mango.domain.c -> mango.domain.a"
    ]


def test_every_circle_is_shown_once(tmp_path: Path) -> None:
    for one, other in [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("e", "a")]:
        write(tmp_path, f"mango.domain.{one}", f"import mango.domain.{other}\n")
    assert [line.partition(": import circle: ")[2] for line in violations(tmp_path)] == [
        "mango.domain.a -> mango.domain.b -> mango.domain.a",
        "mango.domain.c -> mango.domain.d -> mango.domain.c",
    ]


def test_types_alone_close_no_circle(tmp_path: Path) -> None:
    write(tmp_path, "mango.domain.a", "import mango.domain.b\n")
    types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mango.domain.a import A\n"
    write(tmp_path, "mango.domain.b", types)
    assert violations(tmp_path) == []


def test_a_package_that_gathers_its_modules_is_no_circle(tmp_path: Path) -> None:
    write(tmp_path, "mango.memory.a", "from mango.memory import b\n")
    write(tmp_path, "mango.memory.b", "B = 1\n")
    (tmp_path / "functions/mango/memory/__init__.py").write_text("from mango.memory.a import b\n")
    assert violations(tmp_path) == []


def test_a_module_that_asks_the_package_that_gathers_it_is_one(tmp_path: Path) -> None:
    write(tmp_path, "mango.memory.a", "from mango.memory import B\n")
    (tmp_path / "functions/mango/memory/__init__.py").write_text("from mango.memory.a import A\n")
    (only,) = violations(tmp_path)
    assert "mango.memory -> mango.memory.a -> mango.memory" in only


def test_the_program_prints_violations_and_fails(tmp_path: Path) -> None:
    write(tmp_path, "mango.domain.a", "import mango.ports\n")
    command = [sys.executable, str(SCRIPT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == violations(tmp_path) != []

    write(tmp_path, "mango.domain.a")
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
