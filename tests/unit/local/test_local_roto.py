from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mango_local import guard
from mango_local.roto import Roto, StoreFailed, end_stale, is_endpoint, read_endpoint

PARENT = """
import sys, time
from pathlib import Path
from mango_local.roto import Roto
Roto(Path(sys.argv[1]), durable=False).start()
print("ready", flush=True)
time.sleep(60)
"""


def store_pid(folder: Path) -> int:
    """0 while it is being started again."""
    try:
        return int((folder / "store.pid").read_text().split()[0])
    except (FileNotFoundError, IndexError):
        return 0


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


def connects(endpoint: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2])), 0.5).close()
    except OSError:
        return False
    return True


def test_starts_and_ends(tmp_path: Path) -> None:
    roto = Roto(tmp_path)
    roto.start()
    pid = store_pid(tmp_path)
    assert connects(roto.endpoint)
    assert read_endpoint(tmp_path) == roto.endpoint
    roto.stop()
    assert guard.started(pid) is None
    assert not connects(roto.endpoint)


def test_comes_back_at_the_same_address(tmp_path: Path) -> None:
    roto = Roto(tmp_path, durable=False)
    roto.start()
    first = store_pid(tmp_path)
    try:
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: store_pid(tmp_path) not in (0, first) and connects(roto.endpoint))
        assert eventually(lambda: roto.restarts == 1)
    finally:
        roto.stop()
    again = Roto(tmp_path, durable=False)
    again.start()
    try:
        assert again.endpoint == roto.endpoint
    finally:
        again.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is a thing of Linux")
def test_its_processes_see_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MANGO_API_KEY", "MANGO_MODEL_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "WHATEVER"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("ROTO_ACCOUNT_ID", "000000000000")  # would make it another store
    for name in ("LC_TIME", "TZ"):
        monkeypatch.setenv(name, "C")
    roto = Roto(tmp_path, durable=False)
    roto.start()
    try:
        assert roto._guard is not None
        for pid in (roto._guard.pid, store_pid(tmp_path)):
            environ = Path(f"/proc/{pid}/environ").read_bytes()
            seen = {variable.partition(b"=")[0].decode() for variable in environ.split(b"\0") if variable}
            assert b"canary" not in environ
            assert {"PATH", "LC_TIME", "TZ"} <= seen
            assert not {name for name in seen if name.startswith(("MANGO_", "AWS_", "ANTHROPIC_", "ROTO_"))}
    finally:
        roto.stop()


JUNK = [
    b"", b"\n", b"junk", b"\xff\xfe\x00", b"h:80", b"http://127.0.0.1", b"http://h:99999", b"http://h:0", b"http://[::1",
    b"http://127.0.0.1:5070\nmore", "http://127.0.0.1:\u0665".encode(),
]  # fmt: skip


@pytest.mark.parametrize("junk", JUNK, ids=str)
def test_a_damaged_address_is_written_anew(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "endpoint").write_bytes(junk)
    assert read_endpoint(tmp_path) in (None, "http://127.0.0.1")
    roto = Roto(tmp_path, durable=False)
    roto.start()
    try:
        assert read_endpoint(tmp_path) == roto.endpoint
    finally:
        roto.stop()


def test_knows_an_address() -> None:
    for good in ("http://127.0.0.1:5070", "https://dynamo.example", "http://[::1]:80/", "http://a-b_c:65535"):
        assert is_endpoint(good)
    for bad in (
        "",
        "nonsense",
        "ftp://h:80",
        "http://",
        "http://a b:80",
        "http://h:port",
        "http://u@h:80",
        "http://h:80/x",
    ):
        assert not is_endpoint(bad)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_dies_with_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        pid = store_pid(tmp_path)
        assert guard.started(pid) is not None
        parent.send_signal(how)
        parent.wait()
    assert eventually(lambda: guard.started(pid) is None)


@pytest.mark.skipif(sys.platform != "linux", reason="a death signal is a thing of Linux")
def test_dies_with_its_guard(tmp_path: Path) -> None:
    roto = Roto(tmp_path, durable=False)
    roto.start()
    first = store_pid(tmp_path)
    try:
        assert roto._guard is not None
        roto._guard.kill()
        assert eventually(lambda: guard.started(first) is None)
        assert eventually(lambda: store_pid(tmp_path) not in (0, first) and connects(roto.endpoint))
    finally:
        roto.stop()


def test_a_stale_store_is_ended_and_nobody_else(tmp_path: Path) -> None:
    pid_file = tmp_path / "store.pid"
    with subprocess.Popen(["sleep", "60"]) as stranger:
        pid_file.write_text(f"{stranger.pid} 12345\n")  # the id was used again
        assert not end_stale(pid_file)
        assert stranger.poll() is None
        pid_file.write_text(f"{stranger.pid} {guard.started(stranger.pid)}\n")
        assert end_stale(pid_file)
        assert stranger.wait(5) == -signal.SIGKILL
    assert not end_stale(pid_file)
    pid_file.write_text("nonsense")
    assert not end_stale(pid_file)


def test_start_ends_the_store_of_an_earlier_life(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stale:
        (tmp_path / "store.pid").write_text(f"{stale.pid} {guard.started(stale.pid)}\n")
        roto = Roto(tmp_path, durable=False)
        roto.start()
        roto.stop()
        assert stale.wait(5) == -signal.SIGKILL


def test_a_fixed_port_in_use_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(StoreFailed, match="another process uses it"):
            Roto(tmp_path, port=taken.getsockname()[1]).start()
