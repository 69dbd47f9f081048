"""Who a supervisor is: the same again after a restart, and never two at once on one machine.

What a killed supervisor left behind is found by its name. A name is held by a file lock, which the kernel gives up
when its holder dies; so a name is free exactly when nobody alive goes by it.
"""

import fcntl
import os
import re
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mango_worker.errors import WorkerError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_SLOTS = 1000


@dataclass(frozen=True, slots=True)
class Identity:
    """A held name. It is given up when the process ends, or by `release`."""

    name: str
    lock: IO[str]

    def release(self) -> None:
        self.lock.close()


def state_directory() -> Path:
    """Where workers of this user keep their state."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "mango" / "worker"


def claim_identity(wanted: str | None, directory: Path | None = None) -> Identity:
    """Hold the name `wanted`, or the first free one of this machine."""
    locks = (directory or state_directory()) / "names"
    try:
        locks.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise WorkerError(f"cannot keep state in {locks}: {error.strerror}") from None
    if wanted is not None:
        if _NAME.fullmatch(wanted) is None:
            raise WorkerError("--worker-id must be 1 to 128 letters, digits, dots, dashes or underscores")
        identity = _hold(locks, wanted)
        if identity is None:
            raise WorkerError(f"another supervisor on this machine goes by --worker-id {wanted}")
        return identity
    base = f"{_host()}-{_installation(locks)}"
    for slot in range(1, _SLOTS):
        identity = _hold(locks, f"{base}-{slot}")
        if identity is not None:
            return identity
    raise WorkerError("too many supervisors on this machine")


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()).lstrip("-._")[:100] or "host"


def _installation(directory: Path) -> str:
    """A random mark of this state directory: locks in another directory (another user's) say nothing about ours, and
    their supervisors may use the same engine."""
    with (directory / "installation").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        mark = file.read().strip()
        if not mark:
            mark = uuid.uuid4().hex[:8]
            file.write(mark)
        return mark


def _hold(directory: Path, name: str) -> Identity | None:
    lock = (directory / f"{name}.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return Identity(name, lock)
