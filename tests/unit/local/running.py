"""`mango` processes, and a client that needs no SDK."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

KEY = "sk-mango-local-development"
MANGO = [sys.executable, "-c", "from mango_local.cli import main; main()"]


class Mango:
    """A running command; ended, if need be by force, when the test is over."""

    def __init__(self, folder: Path, *arguments: str, **environ: str) -> None:
        self.log = folder / f"{arguments[0]}-{time.monotonic_ns()}.log"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MANGO_")}
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [*MANGO, *arguments],
                cwd=folder,
                stdout=output,
                stderr=output,
                env={**clean, "MANGO_OFFLINE_THINK_SECONDS": "0", **environ},
            )

    @property
    def output(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def says(self, pattern: str, seconds: float = 20.0) -> str:
        """The first match in its output."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if match := re.search(pattern, self.output):
                return match[match.lastindex or 0]
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise AssertionError(f"never said {pattern!r}:\n{self.output}")

    def url(self) -> str:
        return self.says(r"listens on +(http://127\.0\.0\.1:\d+)")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, how: signal.Signals = signal.SIGTERM, seconds: float = 20.0) -> int:
        self.process.send_signal(how)
        return self.process.wait(seconds)


@contextmanager
def mango(folder: Path, *arguments: str, **environ: str) -> Iterator[Mango]:
    """Runs a command of `mango` in a folder."""
    running = Mango(folder, *arguments, **environ)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()


class Api:
    """The few requests that the tests need."""

    def __init__(self, base: str) -> None:
        self.http = httpx.Client(base_url=base, headers={"x-api-key": KEY}, timeout=20)

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def session(self) -> str:
        environment = self._post("/v1/environments", {"name": "local"})
        agent = self._post("/v1/agents", {"name": "echo", "model": "offline"})
        session = self._post("/v1/sessions", {"agent": agent["id"], "environment_id": environment["id"]})
        return str(session["id"])

    def say(self, session_id: str, text: str) -> None:
        event = {"type": "user.message", "content": [{"type": "text", "text": text}]}
        self._post(f"/v1/sessions/{session_id}/events", {"events": [event]})

    def events(self, session_id: str) -> list[dict[str, Any]]:
        answer = self.http.get(f"/v1/sessions/{session_id}/events", params={"limit": 1000})
        answer.raise_for_status()
        data: list[dict[str, Any]] = answer.json()["data"]
        return data

    def idle(self, session_id: str, turns: int = 1, seconds: float = 20.0) -> list[str]:
        """Types of all events, once so many turns have ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            types = [event["type"] for event in self.events(session_id)]
            if types.count("session.status_idle") >= turns:
                return types
            time.sleep(0.02)
        raise AssertionError(f"not idle: {types}")

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.http.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        assert answer.status_code == 200, answer.text
        created: dict[str, Any] = answer.json()
        return created
