"""Starts MiniStack on loopback for those who have no emulator, and ends it again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from mango_local.deploy import tools
from mango_local.deploy.endpoint import answers
from mango_local.deploy.errors import DeployFailed
from mango_local.guard import started

HOST = "127.0.0.1"
USUAL_PORT = 4566
READY_SECONDS = 30.0
STOP_SECONDS = 10.0
_PRIVATE = ("MANGO_", "ANTHROPIC_", "AWS_", "PYTHON")
"""Variables that its functions, which inherit its environment, must not see."""


_children: list[subprocess.Popen[bytes]] = []
"""Those that this very process started, and therefore has to take leave of."""


class MiniStack:
    """One MiniStack process; it outlives this one, so it is known by its id and start time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "ministack.log"
        self.url = ""
        self.pid = 0
        self.since = ""

    def start(self, port: int | None = None) -> None:
        """Returns when it answers. Raises `DeployFailed`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # Unpacked functions stay here, so that they go when the folder does.
        scratch = self._folder / "tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        program = tools.program(tools.MINISTACK, "ministack")
        chosen = port or (USUAL_PORT if _free(USUAL_PORT) else _any_port())
        if not _free(chosen):
            raise DeployFailed(f"port {chosen} is taken; choose another by --port, or set AWS_ENDPOINT_URL")
        self.url = f"http://{HOST}:{chosen}"
        with self._log.open("wb") as log:
            child = subprocess.Popen(
                [str(program)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=_environment(chosen, scratch.resolve()),
                start_new_session=True,  # it goes on when this command ends
            )
        _children.append(child)
        self.pid, self.since = child.pid, started(child.pid) or ""
        self._wait(child)

    def _wait(self, child: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not answers(f"{self.url}/_ministack/health"):
            if child.poll() is not None or time.monotonic() > deadline:
                end(self.pid, self.since)
                tail = self._log.read_text("utf-8", "replace")[-800:].strip()
                raise DeployFailed(f"MiniStack does not start; its log is {self._log}:\n{tail}")
            time.sleep(0.05)


def alive(pid: int, since: str) -> bool:
    """Whether the process that was started then still runs."""
    return bool(pid and since) and started(pid) == since


def end(pid: int, since: str) -> bool:
    """Ends the process, and that one only; True if it ran."""
    if not alive(pid, since):
        return False
    for sign in (signal.SIGTERM, signal.SIGKILL):
        # It leads a process group of its own, which its functions belong to.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, sign)
        deadline = time.monotonic() + STOP_SECONDS
        while alive(pid, since) and time.monotonic() < deadline:
            for child in _children:
                child.poll()
            time.sleep(0.02)
        if not alive(pid, since):
            break
    return True


def clean(folder: Path) -> None:
    """Removes what it unpacked."""
    shutil.rmtree(folder / "tmp", ignore_errors=True)


def _environment(port: int, scratch: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_PRIVATE)}
    return {
        **kept,
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "NO_PROXY": f"{HOST},localhost",
        "PERSIST_STATE": "0",
        "TMPDIR": str(scratch),
    }


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _any_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
