"""The `grep` tool: lines that match a regular expression.

The search runs in a child process, with ripgrep or else Python's `re`: an expression that takes exponential time can
then be killed, and cannot keep this process from renewing its lease.
"""

import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from mango_worker.text import head, valid_text
from mango_worker.tools.base import Arguments, Cancel, ToolError, ToolResult, text_result
from mango_worker.tools.environment import tool_environment
from mango_worker.tools.workspace import Workspace

MAX_OUTPUT = 100_000
MAX_SECONDS = 30.0
_RIPGREP = (
    "--no-config", "--line-number", "--no-heading", "--with-filename", "--null", "--color=never", "--no-messages",
    "--hidden", "--no-ignore", "--glob=!.git", "--glob=!node_modules", "--max-columns=2000", "--sort=path",
)  # fmt: skip
_FALLBACK = str(Path(__file__).with_name("grep_fallback.py"))


class _Search(NamedTuple):
    """What a search printed (bounded), why it was cut short if it was, and what it printed as errors."""

    output: bytes
    cut: str
    complaint: str


class Grep:
    name = "grep"
    arguments = frozenset({"pattern", "path"})

    def __init__(self, workspace: Workspace, ripgrep: bool = True) -> None:
        self._workspace = workspace
        self._ripgrep = _find_ripgrep(workspace.root) if ripgrep else None

    def run(self, arguments: Arguments, cancel: Cancel) -> ToolResult:
        pattern = arguments.string("pattern")
        resolved = self._workspace.resolve(arguments.optional_string("path") or ".")
        if not os.path.lexists(resolved):
            raise ToolError(f"{resolved}: no such file or directory")
        # Relative to the searched place, so that the names which are left out count below it only.
        directory, target = (resolved, ".") if Path(resolved).is_dir() else os.path.split(resolved)
        command = self._command(pattern, target if target == "." else f"./{target}")
        search = _search(command, directory, cancel)
        # Unreadable files are passed over in silence, so whatever is complained about is the expression.
        if search.complaint and not search.output:
            raise ToolError(f"the search failed: {search.complaint}")
        return text_result(_formatted(search, directory))

    def _command(self, pattern: str, target: str) -> list[str]:
        if self._ripgrep:
            return [self._ripgrep, *_RIPGREP, f"--regexp={pattern}", "--", target]
        return [sys.executable, "-I", _FALLBACK, pattern, target]


def _find_ripgrep(root: str) -> str | None:
    found = shutil.which("rg")
    if found is None or os.path.realpath(found).startswith(root.rstrip("/") + "/"):
        return None
    return found


def _search(command: list[str], directory: str, cancel: Cancel) -> _Search:
    deadline = time.monotonic() + MAX_SECONDS
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=directory,
            env=tool_environment(),
        ) as process,
    ):
        assert process.stdout is not None
        try:
            output, cut = _collect(process.stdout.fileno(), deadline, cancel)
        except BaseException:
            process.kill()
            raise
        if cut:
            process.kill()
        process.wait()
        errors.seek(0)
        return _Search(output, cut, errors.read(1000).decode("utf-8", "replace").strip())


def _collect(descriptor: int, deadline: float, cancel: Cancel) -> tuple[bytes, str]:
    output = bytearray()
    while len(output) <= MAX_OUTPUT:
        cancel.check()
        if time.monotonic() >= deadline:
            return bytes(output), f"[search stopped after {MAX_SECONDS:g} s]"
        if select.select([descriptor], [], [], 0.05)[0]:
            part = os.read(descriptor, 65_536)
            if not part:
                return bytes(output), ""
            output += part
    return bytes(output), f"[output truncated at {MAX_OUTPUT} bytes]"


def _formatted(search: _Search, directory: str) -> str:
    lines = []
    for raw in search.output.split(b"\n"):
        name, separator, rest = raw.partition(b"\x00")
        if separator:
            path = os.fsencode(directory).rstrip(b"/") + b"/" + name.removeprefix(b"./")
            lines.append((path + b":" + rest).decode("utf-8", "replace").rstrip("\r"))
    text, shortened = head(valid_text("\n".join(lines)), MAX_OUTPUT)
    mark = search.cut or (f"[output truncated at {MAX_OUTPUT} bytes]" if shortened else "")
    return "\n".join(part for part in (text, mark) if part) or "no matches"
