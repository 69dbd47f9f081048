"""Kernel switches of the item process (Linux): what its own children must not do, and how they are found again."""

import ctypes
import os
import signal
import sys

from mango_worker.errors import WorkerError

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def forbid_inspection() -> None:
    """Make this process non-dumpable: a child with the same uid can neither ptrace it nor read its memory,
    environment or descriptors under /proc. Call it before reading a secret."""
    _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that none can hide by daemonising."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(parent: int) -> None:
    """Receive SIGTERM when the parent process `parent` dies, also if it already has."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise WorkerError("the supervisor is gone")


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        raise WorkerError("tools run on Linux only; use `mango-worker docker` on this machine")
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        raise WorkerError(f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}")
