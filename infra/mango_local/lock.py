"""One owner for a data directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class AlreadyLocked(Exception):
    """Another process owns the data directory."""

    def __init__(self, folder: Path, holder: str) -> None:
        super().__init__(f"{folder} is in use by {holder}. Stop that process, or choose another place with --data-dir.")
        self.folder = folder
        self.holder = holder


class DataDirUnusable(Exception):
    """Nothing can be kept there."""

    def __init__(self, folder: Path, error: OSError) -> None:
        # What stands in the way of a directory "exists", which alone would tell nobody what is wrong.
        reason = "it is not a directory" if isinstance(error, FileExistsError) else error.strerror or error
        at = f" at {error.filename}" if error.filename not in (None, str(folder)) else ""
        super().__init__(
            f"cannot keep data in {folder}: {reason}{at}. "
            "Name a directory that can be written, or a place for one, with --data-dir."
        )


class DataLock:
    """Exclusive lock on a data directory; the kernel frees it when the process ends, however it ends.

    Children do not inherit it: Python opens files so that they are closed by exec.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None

    def acquire(self) -> None:
        """Raises `AlreadyLocked`, which names the holder, and `DataDirUnusable`."""
        try:
            self._file = self._lock()
        except OSError as error:
            raise DataDirUnusable(self._folder, error) from None

    def _lock(self) -> int:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 100, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise AlreadyLocked(self._folder, f"process {holder}" if holder else "another process") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return descriptor

    def release(self) -> None:
        """Frees it. The file stays: removing it would let two processes lock two files of one name."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
