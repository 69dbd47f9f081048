"""The example as a command of its own, against a real `mango up`; for the tests that need both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx

from tests.support.deployment import KEY, Deployment
from tests.support.emulated import EmulatedDeployment

PROJECT = Path(__file__).resolve().parents[3]
EXAMPLE = PROJECT / "examples/coding-agent"
REPLACED = "Worker stopped; starting a replacement for the same Session..."
BASELINE = "Baseline: 4 tests, 3 failures."
MAX_SECONDS = 120.0


class Walk:
    """A running example. Its output is read line by line while it runs."""

    def __init__(self, deployment: Deployment | EmulatedDeployment, results: Path, *arguments: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MANGO_")} | {
            "MANGO_API_KEY": KEY,
            "MANGO_EXAMPLE_MODEL_ID": "scripted",
            "MANGO_EXAMPLE_BASE_URL": deployment.url,
            "MANGO_EXAMPLE_OUTPUT_DIR": str(results),
            "MANGO_DOCKER_BASE_URL": f"http://host.docker.internal:{deployment.port}",
        }
        self._deployment, self._results = deployment, results
        self._line_came = threading.Condition()
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, str(EXAMPLE / "run.py"), *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def until(self, start: str, after: str = "") -> None:
        """Waits for a line that starts like this, behind one that starts like `after`."""

        def came() -> bool:
            behind = next((i for i, line in enumerate(self.lines) if line.startswith(after)), len(self.lines))
            return any(line.startswith(start) for line in self.lines[behind:])

        with self._line_came:
            assert self._line_came.wait_for(came, MAX_SECONDS), self.text

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        try:
            code = self.process.wait(MAX_SECONDS)
        finally:
            self.process.kill()
        self._reader.join(MAX_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def folder(self) -> Path:
        (found,) = self._results.iterdir()
        return found

    @property
    def resources(self) -> dict[str, Any]:
        recorded: dict[str, Any] = json.loads((self.folder / "resources.json").read_text())
        return recorded

    @property
    def events(self) -> list[dict[str, Any]]:
        saved: list[dict[str, Any]] = json.loads((self.folder / "events.json").read_text())
        return saved

    def check_success(self, place: str) -> None:
        """The lines, the result directory and the history of a walk that went well."""
        assert self.process.returncode == 0, self.text
        assert self.lines[0] == f"Artifacts: {self.folder}"
        session = self.resources["session"]
        expected = [f"Session: {session}", BASELINE, REPLACED]
        places = [self.lines.index(line) for line in expected]
        assert places == sorted(places)
        assert self.lines[-2:] == [
            f"Verified: 4 pristine tests pass in {place}; File upload/download bytes match.",
            f"Artifacts kept in {self.folder}",
        ]
        assert any(line.startswith("[tool] {") for line in self.lines[places[1] : places[2]])
        assert any(line.startswith("[tool] {") for line in self.lines[places[2] :])
        self._check_folder(session)
        self._check_history()

    def _check_folder(self, session: str) -> None:
        assert {path.name for path in self.folder.iterdir()} == {
            "invoice-fixed.py", "before", "after", "before-tests.txt", "after-tests.txt", session, "events.json",
            "resources.json", "worker.log",
        }  # fmt: skip
        fixture = EXAMPLE / "broken-invoice"
        assert (self.folder / "before/invoice.py").read_bytes() == (fixture / "invoice.py").read_bytes()
        for place in ("before", "after", session):
            assert (self.folder / place / "test_invoice.py").read_bytes() == (fixture / "test_invoice.py").read_bytes()
        repaired = (self.folder / "invoice-fixed.py").read_bytes()
        assert repaired != (fixture / "invoice.py").read_bytes()
        assert repaired == (self.folder / "after/invoice.py").read_bytes()
        assert repaired == (self.folder / session / "invoice.py").read_bytes()
        assert "FAILED (failures=3)" in (self.folder / "before-tests.txt").read_text()
        assert (self.folder / "after-tests.txt").read_text().endswith("\nOK\n")
        log = (self.folder / "worker.log").read_text()
        assert log.count("started\n") >= 2
        assert log.count("ended with exit code 0\n") == 2
        for path in self.folder.rglob("*"):
            assert path.is_dir() or KEY not in path.read_text(), f"{path} holds the key"

    def _check_history(self) -> None:
        """Two messages, never sent twice; each call has one result; a failing test was seen before the first edit."""
        events = self.events
        assert len([event for event in events if event["type"] == "user.message"]) == 2
        calls = {event["id"]: event["name"] for event in events if event["type"] == "agent.tool_use"}
        results = [event for event in events if event["type"] == "user.tool_result"]
        assert sorted(result["tool_use_id"] for result in results) == sorted(calls)
        assert results[0]["is_error"]
        assert calls[results[0]["tool_use_id"]] == "bash"
        assert events[-1]["type"] == "session.status_idle"

    def check_gone(self, *, archived_session: bool) -> None:
        """What was made on the server has been cleared away."""
        recorded = self.resources
        with self._deployment.http() as http:
            session = http.get(f"/v1/sessions/{recorded['session']}")
            if archived_session:
                assert session.json()["archived_at"]
            else:
                assert session.status_code == 404
            for kind in ("agent", "environment"):
                assert http.get(f"/v1/{kind}s/{recorded[kind]}").json()["archived_at"], kind
            for file_id in recorded["files"].values():
                assert http.get(f"/v1/files/{file_id}").status_code == 404

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._line_came:
                self.lines.append(line.rstrip("\n"))
                self._line_came.notify_all()


def server_answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=2).status_code == 200
    except httpx.TransportError:
        return False
