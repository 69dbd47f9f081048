"""Runs one command and takes it down with whoever started this script, however that one ends.

A script of its own (`python -I guard.py PIDFILE COMMAND...`), because that is what works for every end: its standard
input is a pipe whose other end only the parent holds, so the kernel closes it even after `kill -9`. A death signal
set in the parent instead would be bound to the parent's thread that forked, and would run code between fork and exec
of a process full of threads. The command itself has the guard's death signal where the kernel offers one, so that it
does not outlive the guard either. Imports the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def started(pid: int) -> str | None:
    """When a process was started, in the form that this machine gives; None when there is no such process.

    Together with the id it names one process for ever: ids are used again, start times of one id are not.
    """
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] == "Z" else fields[19]
    answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def _die_with_guard() -> None:
    # Safe between fork and exec: the guard has a single thread when it forks.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def _end_when_parent_does(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1024):
        pass
    child.kill()


def main(pid_file: str, command: list[str]) -> int:
    """Runs the command; returns its exit code. SIGTERM is passed on, the end of standard input kills it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    linux = sys.platform == "linux"
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_guard if linux else None,
    )
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    Path(pid_file).write_text(f"{child.pid} {started(child.pid)}\n")
    threading.Thread(target=_end_when_parent_does, args=(child,), daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
