from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mango_local.lock import AlreadyLocked, DataDirUnusable, DataLock

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


@pytest.mark.parametrize("place", ["file", "file/below", "file/a/b", "link", "/proc/mango", "/proc/a/b", "n" * 300])
def test_a_place_where_nothing_can_be_kept_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    folder = tmp_path / place
    with pytest.raises(DataDirUnusable, match="--data-dir") as told:
        DataLock(folder).acquire()
    assert str(folder) in str(told.value)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_directory_in_the_lock_s_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(DataDirUnusable, match=str(tmp_path / "lock")):
        DataLock(tmp_path).acquire()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_of_somebody_else_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DataDirUnusable, match="Permission denied"):
        DataLock(tmp_path / "data").acquire()


def test_is_free_after_release(tmp_path: Path) -> None:
    first, second = DataLock(tmp_path), DataLock(tmp_path)
    first.acquire()
    with pytest.raises(AlreadyLocked):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
