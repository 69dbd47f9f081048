"""What a module imports, found by reading: modules of Mango, and the packages of others that those need."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = "mango"


@dataclass(slots=True)
class Imports:
    """Modules of ours with their files, and top-level names of others; the standard library is left out."""

    modules: dict[str, Path] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)


def reachable(modules: Iterable[str], sources: Path, loads: Iterable[str] = ()) -> Imports:
    """Everything that importing the modules can import, now or later; `loads` are packages taken whole."""
    found = Imports()
    waiting = [*modules, *(name for package in loads for name in _inside(package, sources))]
    while waiting:
        name = waiting.pop()
        path = _file(name, sources)
        if path is None or name in found.modules:
            continue
        found.modules[name] = path
        waiting += [name.rpartition(".")[0]]
        for imported in _imported(path, name):
            if imported.split(".")[0] == PACKAGE:
                waiting.append(imported)
            elif (top := imported.split(".")[0]) not in sys.stdlib_module_names:
                found.foreign.add(top)
    return found


def _file(name: str, sources: Path) -> Path | None:
    """The file of a module; None for a name inside one."""
    if not name:
        return None
    base = sources.joinpath(*name.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def _inside(package: str, sources: Path) -> Iterator[str]:
    for path in sorted(sources.joinpath(*package.split(".")).glob("*.py")):
        yield package if path.stem == "__init__" else f"{package}.{path.stem}"


def _imported(path: Path, name: str) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _at_run_time(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those below `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for statement in child.orelse:
                yield statement
                yield from _at_run_time(statement)
            continue
        yield child
        yield from _at_run_time(child)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"
