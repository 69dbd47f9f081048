"""The `glob` tool: files by name pattern, newest first."""

import os
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from mango_worker.tools.base import Arguments, Cancel, ToolError, ToolResult, text_result
from mango_worker.tools.patterns import Pattern
from mango_worker.tools.workspace import Workspace

MAX_RESULTS = 200
MAX_ENTRIES = 50_000


class _Found(NamedTuple):
    changed: float
    path: str


class Glob:
    name = "glob"
    arguments = frozenset({"pattern", "path"})

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def run(self, arguments: Arguments, cancel: Cancel) -> ToolResult:
        pattern = Pattern(arguments.string("pattern"))
        base = self._workspace.resolve(arguments.optional_string("path") or ".")
        walk = _Walk(self._workspace, base, pattern, cancel)
        found = sorted(walk.files(), key=lambda one: (-one.changed, one.path))
        notes = [f"[{MAX_RESULTS} newest of {len(found)} files]"] if len(found) > MAX_RESULTS else []
        if walk.cut:
            notes.append(f"[stopped after {MAX_ENTRIES} entries: narrow the pattern or the path]")
        return text_result("\n".join([*(one.path for one in found[:MAX_RESULTS]), *notes]) or "no matches")


class _Walk:
    """Breadth first, so that one deep tree cannot use up the limit before its neighbours are seen."""

    def __init__(self, workspace: Workspace, base: str, pattern: Pattern, cancel: Cancel) -> None:
        self._workspace, self._base, self._pattern, self._cancel = workspace, base, pattern, cancel
        self._seen = 0
        self.cut = False

    def files(self) -> Iterator[_Found]:
        pending: deque[tuple[str, ...]] = deque([()])
        while pending and not self.cut:
            parts = pending.popleft()
            self._cancel.check()
            try:
                yield from self._directory(parts, pending)
            except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
                # The base itself must be readable; whatever vanishes or is closed further down is passed over.
                if not parts:
                    raise ToolError(f"{self._base}: {error.strerror}") from None

    def _directory(self, parts: tuple[str, ...], pending: deque[tuple[str, ...]]) -> Iterator[_Found]:
        path = "/".join((self._base.rstrip("/"), *parts))
        with self._workspace.open_directory(path) as descriptor, os.scandir(descriptor) as entries:
            for entry in entries:
                self._seen += 1
                if self._seen > MAX_ENTRIES:
                    self.cut = True
                    return
                inner = (*parts, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    if self._wanted(inner):
                        pending.append(inner)
                elif self._pattern.matches(inner):
                    changed = entry.stat(follow_symlinks=False).st_mtime
                    yield _Found(changed, _shown(f"{path}/{entry.name}"))

    def _wanted(self, parts: tuple[str, ...]) -> bool:
        # Git's object store is noise unless asked for by name.
        hidden_store = parts[-1] == ".git" and not self._pattern.names(".git")
        return not hidden_store and self._pattern.may_match_below(parts)


def _shown(path: str) -> str:
    """A name that is not UTF-8 can be shown, though not opened by what is shown."""
    return os.fsencode(path).decode("utf-8", "replace")
