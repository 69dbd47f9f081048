"""The directory that file tools are confined to.

A path is first resolved with all its symbolic links and must lie inside. Then it is opened from the root directory
component by component without following any link: whatever is swapped in between is an error, never an escape.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from uuid import uuid4

from mango_worker.tools.base import ToolError

MAX_PATH = 2048
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A FIFO or device must not make open() wait.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Workspace:
    """Confined access to one directory tree. Paths in the methods' results are absolute."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    def resolve(self, path: str) -> str:
        """The absolute path without symbolic links that `path` (absolute, or relative to the root) stands for."""
        if not path:
            raise ToolError("the path is empty")
        if len(path.encode("utf-8")) > MAX_PATH:
            # Step by step one can go deeper than any path can name, and nobody could clean up afterwards.
            raise ToolError(f"the path is longer than {MAX_PATH} bytes")
        resolved = os.path.realpath(PurePosixPath(self.root, path))
        if resolved != self.root and not resolved.startswith(self.root.rstrip("/") + "/"):
            raise ToolError(f"{path}: path escapes the workspace")
        return resolved

    @contextmanager
    def open_directory(self, resolved: str, create: bool = False) -> Iterator[int]:
        """A descriptor of a resolved directory; with `create`, missing directories are made."""
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in PurePosixPath(os.path.relpath(resolved, self.root)).parts:
                inner = _enter(descriptor, name, create)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def open_file(self, resolved: str) -> Iterator[int]:
        """A descriptor of a resolved regular file, for reading."""
        parent, name = os.path.split(resolved)
        if resolved == self.root:
            raise ToolError(f"{resolved} is a directory")
        with self.open_directory(parent) as directory:
            descriptor = os.open(name, _FILE, dir_fd=directory)
            try:
                _require_regular(resolved, os.fstat(descriptor).st_mode)
                yield descriptor
            finally:
                os.close(descriptor)

    def read_bytes(self, resolved: str, limit: int) -> bytes:
        """The whole file; ToolError if it is larger than `limit` bytes."""
        with self.open_file(resolved) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise ToolError(f"{resolved} is larger than {limit} bytes")
        return content

    def write_bytes(self, resolved: str, content: bytes) -> None:
        """Replace or create a file atomically, making parent directories; an existing file keeps its mode."""
        parent, name = os.path.split(resolved)
        if resolved == self.root:
            raise ToolError(f"{resolved} is a directory")
        with self.open_directory(parent, create=True) as directory:
            mode = _existing_mode(resolved, name, directory)
            temporary = f".{uuid4().hex}.tmp"
            try:
                _write_new(temporary, directory, content, mode)
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                _remove_quietly(temporary, directory)
                raise
            os.fsync(directory)


def _enter(directory: int, name: str, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=directory)
    return os.open(name, _DIRECTORY, dir_fd=directory)


def _require_regular(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path} is a directory")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{path} is not a regular file")


def _existing_mode(path: str, name: str, directory: int) -> int:
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0o644
    _require_regular(path, mode)
    return stat.S_IMODE(mode)


def _write_new(name: str, directory: int, content: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=directory), "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def _remove_quietly(name: str, directory: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=directory)
