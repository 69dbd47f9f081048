"""The result directory, and reading what an agent may have put into it."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from coding_agent.failures import ExampleFailed

SOURCE = "invoice.py"
TESTS = "test_invoice.py"
MAX_BYTES = 1 << 20
FIXTURE = Path(__file__).resolve().parent.parent / "broken-invoice"


@dataclass(frozen=True, slots=True)
class Pair:
    """A module and its tests, as bytes."""

    source: bytes
    tests: bytes


def fixture() -> Pair:
    """The broken module that the example is about."""
    return Pair((FIXTURE / SOURCE).read_bytes(), (FIXTURE / TESTS).read_bytes())


class Artifacts:
    """A fresh directory below `parent`. `user` is who runs tests and tools in containers."""

    def __init__(self, parent: Path, user: tuple[int, int]) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="mango-coding-agent-", dir=parent))
        self._user = user

    @property
    def worker_log(self) -> Path:
        return self.folder / "worker.log"

    def workspace(self, session_id: str) -> Path:
        """Where the worker finds the session's files."""
        if Path(session_id).name != session_id or session_id in ("", ".", ".."):
            raise ExampleFailed(f"the session's id cannot name a directory: {session_id!r}")
        return self.folder / session_id

    def stage(self, name: str, pair: Pair) -> Path:
        """Makes a directory with a module and its tests, which belongs to the user of the containers."""
        folder = self.folder / name
        folder.mkdir(mode=0o755)
        for path, content in ((folder / SOURCE, pair.source), (folder / TESTS, pair.tests)):
            path.write_bytes(content)
            path.chmod(0o644)
            self._give(path)
        folder.chmod(0o755)
        self._give(folder)
        return folder

    def save(self, name: str, content: bytes) -> None:
        """Writes a result; a reader never sees half of it."""
        partial = self.folder / f".{name}.partial"
        partial.write_bytes(content)
        partial.replace(self.folder / name)

    def save_json(self, name: str, value: object) -> None:
        self.save(name, f"{json.dumps(value, indent=2)}\n".encode())

    def _give(self, path: Path) -> None:
        if os.getuid() == 0:
            os.chown(path, *self._user)


def read_pair(folder: Path) -> Pair:
    """The module and its tests as the agent left them. Raises `ExampleFailed` for anything but plain, small files."""
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise ExampleFailed(f"the workspace {folder} cannot be read: {error.strerror}") from None
    try:
        return Pair(_read(directory, SOURCE), _read(directory, TESTS))
    finally:
        os.close(directory)


def _read(directory: int, name: str) -> bytes:
    # Whoever wrote the file chose what it is: a link would lead elsewhere, and opening a pipe would wait for ever.
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    except OSError as error:
        raise ExampleFailed(f"{name} in the workspace is not a file that can be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ExampleFailed(f"{name} in the workspace is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise ExampleFailed(f"{name} in the workspace is larger than {MAX_BYTES} bytes")
    return content


def accept(original: Pair, left: Pair) -> bytes:
    """The repaired module, if the agent repaired that and nothing else. Raises `ExampleFailed`."""
    if left.tests != original.tests:
        raise ExampleFailed(f"the agent changed {TESTS}")
    if left.source == original.source:
        raise ExampleFailed(f"the agent left {SOURCE} as it was")
    return left.source
