"""Find and kill every process that descends from this one (Linux, /proc).

With the item process as child subreaper a grandchild cannot leave the tree: whoever loses its parent, by daemonising
or setsid, becomes our child. So "all descendants of us" is complete, which process groups and sessions are not.
"""

import contextlib
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple


class _Entry(NamedTuple):
    parent: int
    zombie: bool


def _processes() -> dict[int, _Entry]:
    found: dict[int, _Entry] = {}
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The command name, in parentheses, may itself hold blanks and parentheses.
            fields = (directory / "stat").read_bytes().rpartition(b")")[2].split()
            found[int(directory.name)] = _Entry(int(fields[1]), fields[0] in (b"Z", b"X"))
    return found


def children() -> frozenset[int]:
    """Direct children of this process, zombies too."""
    return frozenset(pid for pid, entry in _processes().items() if entry.parent == os.getpid())


def descendants(spare: Collection[int] = ()) -> list[int]:
    """Living descendants of this process, without the subtrees rooted at `spare`."""
    processes = _processes()
    by_parent: dict[int, list[int]] = {}
    for pid, entry in processes.items():
        by_parent.setdefault(entry.parent, []).append(pid)
    found: list[int] = []
    pending = [os.getpid()]
    while pending:
        offspring = [pid for pid in by_parent.get(pending.pop(), ()) if pid not in spare]
        pending += offspring
        found += [pid for pid in offspring if not processes[pid].zombie]
    return found


def kill_descendants(spare: Collection[int] = (), bound: float = 2.0) -> bool:
    """Kill every descendant except the subtrees at `spare`; true if none is left within `bound` seconds.

    All are stopped first: a stopped process cannot fork, so even a fork bomb becomes a finite set.
    """
    deadline = time.monotonic() + bound
    stopped: set[int] = set()
    while fresh := set(descendants(spare)) - stopped:
        _signal_all(fresh, signal.SIGSTOP)
        stopped |= fresh
        if time.monotonic() >= deadline:
            break
    while alive := descendants(spare):
        _signal_all(alive, signal.SIGKILL)
        reap(spare)
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    reap(spare)
    return True


def reap(spare: Collection[int] = ()) -> None:
    """Collect adopted zombies, which would count against the limit of processes; `spare` have another owner."""
    for pid, entry in _processes().items():
        if entry.zombie and entry.parent == os.getpid() and pid not in spare:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _signal_all(pids: Collection[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
