"""Real `mango-worker` processes, for tests that kill and stop them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tests.support.deployment import BIN, KEY


class ProcessWorker:
    """`mango-worker process` for one environment."""

    def __init__(
        self, url: str, environment_id: str, root: Path, log: Path, *, max_idle: str = "1s", queue: str = ""
    ) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MANGO_")}
        environment["MANGO_ENVIRONMENT_KEY"] = KEY
        if queue:
            environment |= {"MANGO_QUEUE_URL": queue, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        command = [
            str(BIN / "mango-worker"), "process", "--unsandboxed", "--environment-id", environment_id,
            "--base-url", url, "--workspace-root", str(root), "--max-idle", max_idle,
        ]  # fmt: skip
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)

    def __enter__(self) -> ProcessWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in self.item_pids():
            _signal(pid, signal.SIGCONT)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def item_pids(self) -> list[int]:
        """Its item processes (`mango-worker run`)."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _parent(entry) == self.process.pid:
                found.append(int(entry.name))
        return found

    def freeze(self) -> None:
        """SIGSTOP to supervisor and item alike: a host that hangs."""
        for pid in [*self.item_pids(), self.process.pid]:
            _signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in [self.process.pid, *self.item_pids()]:
            _signal(pid, signal.SIGCONT)

    def kill(self) -> None:
        """`kill -9` of supervisor and item."""
        for pid in [self.process.pid, *self.item_pids()]:
            _signal(pid, signal.SIGKILL)
        self.process.wait()


def wait_until(what: str, holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
