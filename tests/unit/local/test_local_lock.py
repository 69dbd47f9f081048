from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mango_local.lock import AlreadyLocked, DataLock

HOLD = """
import sys, time
from pathlib import Path
from mango_local.lock import DataLock
DataLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(60)
"""


def test_one_process_owns_the_directory_until_it_ends(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        lock = DataLock(folder)
        with pytest.raises(AlreadyLocked, match=f"process {holder.pid}"):
            lock.acquire()
        holder.kill()
        holder.wait()
        lock.acquire()
        lock.release()


def test_is_free_after_release(tmp_path: Path) -> None:
    first, second = DataLock(tmp_path), DataLock(tmp_path)
    first.acquire()
    with pytest.raises(AlreadyLocked):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
