"""A real `mango up` in a process of its own, for tests that kill and restart it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import httpx
from anthropic import Anthropic, AsyncAnthropic

KEY = "sk-mango-local-development"
BIN = Path(sys.executable).parent
READY_SECONDS = 30.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Deployment:
    """`mango up` on a port of its own that stays the same across restarts."""

    def __init__(self, data_dir: Path, model: str = "offline", think_seconds: float = 0.0) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.data_dir = data_dir
        self.log = data_dir.parent / f"{data_dir.name}.log"
        self._model = model
        self._think = think_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[Anthropic] = []

    def __enter__(self) -> Deployment:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """Starts it and waits until it is ready; returns how long that took, in seconds."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MANGO_")}
        environment["MANGO_OFFLINE_THINK_SECONDS"] = str(self._think)
        command = [str(BIN / "mango"), "up", "--data-dir", str(self.data_dir), "--model", self._model]
        command += ["--port", str(self.port)]
        began = time.monotonic()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() - began > READY_SECONDS:
                raise AssertionError(f"mango up did not get ready:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.02)
        return time.monotonic() - began

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """`kill -9`, at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self, seconds: float = 20) -> int:
        """SIGTERM, and its exit code."""
        close_all(self._clients)
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"mango up did not stop:\n{self.log.read_text()[-4000:]}") from None

    def client(self, max_retries: int = 0) -> Anthropic:
        """A client that `stop` closes."""
        client = Anthropic(
            base_url=self.url, api_key=KEY, max_retries=max_retries, _strict_response_validation=True, timeout=30
        )
        self._clients.append(client)
        return client

    def async_client(self) -> AsyncAnthropic:
        return AsyncAnthropic(base_url=self.url, api_key=KEY, _strict_response_validation=True, timeout=30)

    def http(self, key: str | None = KEY) -> httpx.Client:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)


def store_processes(data_dir: Path) -> list[int]:
    """Pids of `roto-server` processes on a data directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if command[0].endswith(b"roto-server") and any(str(data_dir).encode() in part for part in command):
            found.append(int(entry.name))
    return found


def close_all(clients: list[Anthropic]) -> None:
    """Closes connections in time: one that the garbage collector finds is a warning, and so an error."""
    while clients:
        clients.pop().close()
