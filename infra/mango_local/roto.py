"""The store of the embedded profile: a `roto-server` child with its data below the data directory."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from mango_local import guard

log = logging.getLogger("mango.store")

HOST = "127.0.0.1"
READY_WITHIN = 10.0
LONGEST_PAUSE = 5.0
INHERITED = frozenset({"PATH", "HOME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"})
"""Variables for the store and its guard, which runs on a Python that may not find its library by itself."""

_ENDPOINT = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?/?")


class StoreFailed(Exception):
    """The store does not start."""


class Roto:
    """Starts, watches and ends `roto-server`. The caller must hold the lock of the data directory.

    Attributes:
        endpoint: `http://127.0.0.1:<port>`, known after `start` and kept over restarts.
        restarts: how often it had to be started again.
    """

    def __init__(self, folder: Path, *, port: int | None = None, durable: bool = True) -> None:
        self._folder = folder
        self._fixed = port
        self._durable = durable
        self._port = 0
        self._guard: subprocess.Popen[bytes] | None = None
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="store-watcher", daemon=True)
        self.restarts = 0

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self._port}"

    def start(self) -> None:
        """Returns when it takes connections, and has written its address for others. Raises `StoreFailed`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        end_stale(self._pid_file)
        for port in self._candidates():
            self._port = port
            self._guard = self._spawn()
            if self._ready():
                break
        else:
            raise StoreFailed(f"roto-server does not start; its last words are in {self._log_file}:\n{self._tail()}")
        write_endpoint(self._folder, self.endpoint)
        self._watcher.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Ends it. Safe at any moment: what it acknowledged is on disk."""
        with self._changing:
            self._stopping.set()
            child = self._guard
        if child is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.terminate()
            child.wait(seconds)
        self._end(child)
        if self._watcher.is_alive():
            self._watcher.join(1.0)

    @property
    def _pid_file(self) -> Path:
        return self._folder / "store.pid"

    @property
    def _log_file(self) -> Path:
        return self._folder / "store.log"

    def _candidates(self) -> list[int]:
        """Ports to try. The last one comes first, so that processes which use the store find it again."""
        if self._fixed is not None:
            if not _is_free(self._fixed):
                raise StoreFailed(f"the store cannot listen on port {self._fixed}: another process uses it")
            return [self._fixed]
        last = read_endpoint(self._folder)
        known = urlsplit(last).port if last is not None else None
        again = [known] if known is not None and _is_free(known) else []
        return [*again, _free_port(), _free_port(), _free_port()]

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = [_binary(), "--host", HOST, "--port", str(self._port), "--data-dir", str(self._folder / "store")]
        if self._durable:
            command.append("--durable")
        self._pid_file.unlink(missing_ok=True)
        with self._log_file.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(guard.__file__)), str(self._pid_file), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=child_environment(os.environ),
                start_new_session=True,  # Ctrl-C in the terminal must not reach it before we are through
            )

    def _ready(self) -> bool:
        """Waits until it takes connections; False if it ended instead, or took too long."""
        assert self._guard is not None
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline and self._guard.poll() is None and not self._stopping.is_set():
            if self._pid_file.exists() and _connects(self._port) and self._is_ours():
                return True
            time.sleep(0.01)
        self._end(self._guard)
        return False

    def _is_ours(self) -> bool:
        """Whether it is our own child that listens there: a child which finds the port taken ends at once."""
        time.sleep(0.02)
        assert self._guard is not None
        return self._guard.poll() is None

    def _watch(self) -> None:
        pause = 0.1
        while not self._stopping.is_set():
            assert self._guard is not None
            code = self._guard.wait()
            self._end(self._guard)
            if self._stopping.is_set():
                return
            log.error("the store ended by itself (%s), starting it again in %g s: %s", code, pause, self._tail())
            if self._stopping.wait(pause):
                return
            pause = self._restart(pause)

    def _restart(self, pause: float) -> float:
        """Starts it again; returns the pause before the next attempt."""
        began = time.monotonic()
        with self._changing:
            if self._stopping.is_set():
                return pause
            self.restarts += 1
            end_stale(self._pid_file)
            self._guard = self._spawn()
        if not self._ready():
            return min(pause * 2, LONGEST_PAUSE)
        log.warning("the store is back after %.1f s", time.monotonic() - began)
        return 0.1

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Closes the guard's pipe, which makes it kill the store, and waits for both."""
        if child.stdin is not None:
            child.stdin.close()
        try:
            child.wait(2.0)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def _tail(self) -> str:
        with contextlib.suppress(OSError):
            return self._log_file.read_text("utf-8", "replace")[-500:].strip()
        return ""


def end_stale(pid_file: Path) -> bool:
    """Ends the store of an earlier life that outlived its guard, if there is one; True if there was."""
    try:
        pid, _, since = pid_file.read_text().strip().partition(" ")
        number = int(pid)
    except (OSError, ValueError):
        return False
    if since in ("", "None") or guard.started(number) != since:
        return False
    log.warning("ending the store of an earlier life (process %d)", number)
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)
    deadline = time.monotonic() + 5.0
    while guard.started(number) == since and time.monotonic() < deadline:
        time.sleep(0.01)
    return True


def child_environment(source: Mapping[str, str]) -> dict[str, str]:
    """The part of our environment that the store and its guard may see: no keys, and nothing that changes a store."""
    kept = {name: value for name, value in source.items() if name in INHERITED or name.startswith("LC_")}
    return {**kept, "NO_COLOR": "1"}


def write_endpoint(folder: Path, endpoint: str) -> None:
    """Leaves the store's address for `mango serve` and `mango orchestrate`, whole or not at all."""
    draft = folder / "endpoint.new"
    draft.write_text(endpoint + "\n")
    draft.replace(folder / "endpoint")


def read_endpoint(folder: Path) -> str | None:
    """The address that the last store of this data directory had; None also where the file holds something else."""
    try:
        endpoint = (folder / "endpoint").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return endpoint if is_endpoint(endpoint) else None


def is_endpoint(text: str) -> bool:
    """Whether it reads like the address of a store, `http://host:port`."""
    match = _ENDPOINT.fullmatch(text)
    return match is not None and 0 < int(match[1] or 80) < 65536


def _binary() -> str:
    beside = Path(sys.executable).parent / "roto-server"
    found = str(beside) if beside.exists() else shutil.which("roto-server")
    if found is None:
        raise StoreFailed("there is no roto-server; it comes with the package roto-aws")
    return found


def _connects(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), 0.5):
        return True
    return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
