"""What is left on the server: nothing."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from coding_agent import cleanup
from coding_agent.artifacts import Artifacts
from coding_agent.resources import Recorded
from tests.unit.example.example_server import SESSION, TURN, Json, Server

RECORDED = Recorded("http://mango.test", "env_1", "agent_1", 1, SESSION, {"a.py": "file_1", "b.py": "file_2"})
ARCHIVED = ["POST /v1/agents/agent_1/archive", "POST /v1/environments/env_1/archive"]
DELETED = ["DELETE /v1/files/file_1", "DELETE /v1/files/file_2"]
ARCHIVE_SESSION, SESSION_PATH = f"POST /v1/sessions/{SESSION}/archive", f"/v1/sessions/{SESSION}"
EVENTS = f"{SESSION_PATH}/events"


def session(status: str) -> Json:
    return {"id": SESSION, "type": "session", "status": status}


def serving(**statuses: list[Json]) -> Server:
    answers: dict[str, object] = {path: {} for path in (*ARCHIVED, *DELETED, ARCHIVE_SESSION, f"DELETE {SESSION_PATH}")}
    answers[f"GET {EVENTS}?limit=1000"] = {"data": TURN, "next_page": None}
    answers[f"POST {EVENTS}"] = {"data": []}
    answers[f"GET {SESSION_PATH}"] = statuses.get("sessions", [session("idle")])
    return Server(answers)


def cleaned(server: Server, folder: Path, *, succeeded: bool, recorded: Recorded = RECORDED) -> list[str]:
    artifacts = Artifacts(folder, (os.getuid(), os.getgid()))
    return asyncio.run(server.use(lambda client: cleanup.clean_up(client, recorded, artifacts, succeeded=succeeded)))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "_POLL_SECONDS", 0.0)


def test_after_success_all_is_archived_and_the_files_are_deleted(tmp_path: Path) -> None:
    server = serving()
    assert cleaned(server, tmp_path, succeeded=True) == []
    assert server.asked == [ARCHIVE_SESSION, *ARCHIVED, *DELETED]


def test_after_a_failure_the_history_is_saved_and_the_session_deleted(tmp_path: Path) -> None:
    server = serving()
    assert cleaned(server, tmp_path, succeeded=False) == []
    history, retrieve = f"GET {EVENTS}?limit=1000", f"GET {SESSION_PATH}"
    assert server.asked == [history, retrieve, f"DELETE {SESSION_PATH}", *ARCHIVED, *DELETED]
    saved = json.loads(next(tmp_path.glob("*/events.json")).read_text())
    assert [event["id"] for event in saved] == [event["id"] for event in TURN]


def test_a_session_that_runs_is_interrupted_once_before_it_is_deleted(tmp_path: Path) -> None:
    server = serving(sessions=[session("running"), session("running"), session("rescheduling"), session("idle")])
    assert cleaned(server, tmp_path, succeeded=False) == []
    assert server.sent == [{"events": [{"type": "user.interrupt"}]}]
    assert server.asked.index(f"POST {EVENTS}") < server.asked.index(f"DELETE {SESSION_PATH}")


def test_every_step_is_tried_and_what_fails_is_told(tmp_path: Path) -> None:
    server = serving()
    for path in (ARCHIVE_SESSION, ARCHIVED[0], DELETED[1]):
        server._answers[path] = 500
    server._answers[DELETED[0]] = 404  # gone already
    problems = cleaned(server, tmp_path, succeeded=True)
    assert [problem.partition(" failed")[0] for problem in problems] == [
        f"archiving session {SESSION}",
        "archiving agent agent_1",
        "deleting file file_2",
    ]
    assert server.asked == [ARCHIVE_SESSION, *ARCHIVED, *DELETED]


def test_it_does_not_take_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "SECONDS", 0.2)
    problems = cleaned(serving(sessions=[session("running")]), tmp_path, succeeded=False)
    assert problems == ["cleaning up took longer than 0.2 s"]


def test_what_was_never_made_is_not_asked_for(tmp_path: Path) -> None:
    server = serving()
    assert cleaned(server, tmp_path, succeeded=False, recorded=Recorded("http://mango.test")) == []
    assert server.asked == []
