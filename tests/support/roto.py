"""A `roto-server` of one's own for tests: on a free port, with its own data directory, gone with the test process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from mango.aws.clients import AwsSettings
from mango_local import guard

HOST = "127.0.0.1"
_READY_SECONDS = 20.0


class RotoServer:
    """A child that takes connections between `start` and `stop` (or as a context manager).

    It runs under the embedded profile's guard, so that it ends even when the test process is killed.

    Args:
        data_dir: where it keeps what it acknowledged; made if missing.
        durable: fsync on every commit.
    """

    def __init__(self, data_dir: Path, *, durable: bool = False) -> None:
        self.data_dir = data_dir
        self._durable = durable
        self._port = 0
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """`http://127.0.0.1:<port>`; the same after a restart."""
        return f"http://{HOST}:{self._port}"

    @property
    def settings(self) -> AwsSettings:
        """For `mango.aws.clients.Clients`."""
        return AwsSettings(endpoint_url=self.endpoint, access_key_id="test", secret_access_key="test")

    def start(self) -> RotoServer:
        """Returns when it takes connections."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        # Another process may take a port between our finding it free and the server's binding it.
        for port in [self._port] * 3 if self._port else [_free_port() for _ in range(3)]:
            self._port = port
            if self._launch():
                return self
        raise RuntimeError(f"roto-server does not start: {self._log.read_text('utf-8', 'replace')}")

    def stop(self) -> None:
        """Ends it, in good order if nobody keeps a connection open for long."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as `kill -9` does; `start` brings it back with its data and port."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> RotoServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _log(self) -> Path:
        return self.data_dir / "roto.log"

    @property
    def _pid_file(self) -> Path:
        return self.data_dir / "roto.pid"

    def _launch(self) -> bool:
        self._pid_file.unlink(missing_ok=True)
        command = [_binary(), "--host", HOST, "--port", str(self._port), "--data-dir", str(self.data_dir / "data")]
        if self._durable:
            command.append("--durable")
        with self._log.open("wb") as output:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(guard.__file__)), str(self._pid_file), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline and self._guard.poll() is None:
            if _connects(self._port):
                # One that found the port taken ends at once; then somebody else answered.
                time.sleep(0.02)
                if self._guard.poll() is None and self._pid_file.exists():
                    return True
            time.sleep(0.005)
        self._end(signal.SIGKILL)
        return False

    def _end(self, how: signal.Signals) -> None:
        child, self._guard = self._guard, None
        if child is None:
            return
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(self._pid_file.read_text().split()[0]), how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.5)
        assert child.stdin is not None
        child.stdin.close()  # makes the guard kill what did not end by itself
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _binary() -> str:
    beside = Path(sys.executable).parent / "roto-server"
    found = str(beside) if beside.exists() else shutil.which("roto-server")
    if found is None:
        raise RuntimeError("there is no roto-server; it comes with the package roto-aws")
    return found


def _connects(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), 0.5):
        return True
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
