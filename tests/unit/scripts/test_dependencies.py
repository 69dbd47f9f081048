"""docs/dependencies.md has a line of reason for each package that pyproject.toml names, and for no other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[3]


def name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9-]+", requirement)
    assert found is not None
    return found[0]


def test_every_dependency_has_a_line_of_reason() -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    kinds = [
        settings["project"]["dependencies"],
        settings["dependency-groups"]["dev"],
        settings["build-system"]["requires"],
    ]
    rows = (PROJECT / "docs/dependencies.md").read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith("| ")]
    packages = [row for row in cells[1:] if not row[0].startswith("**")]
    assert [row[0] for row in packages] == [name(one) for kind in kinds for one in kind]
    assert [row[0] for row in packages if len(row) != 4 or not all(row)] == []
