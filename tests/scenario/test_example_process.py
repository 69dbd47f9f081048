"""The coding-agent example without Docker, and what becomes of it when something is stopped or killed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.deployment import Deployment
from tests.unit.example.walk import BASELINE, MAX_SECONDS, PROJECT, REPLACED, Walk, server_answers

PLACE = "a fresh subprocess, without a container"


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(tmp_path / "data", "scripted:coding-agent", think_seconds=0.2) as running:
        yield running


def test_the_module_is_repaired_across_a_replacement_of_the_worker(deployment: Deployment, tmp_path: Path) -> None:
    walk = Walk(deployment, tmp_path / "results", "--process")
    walk.ended()
    walk.check_success(PLACE)
    assert "no isolation" in walk.lines[1]
    walk.check_gone(archived_session=True)


def test_a_server_killed_in_both_turns_is_waited_for_and_nothing_is_sent_again(
    deployment: Deployment, tmp_path: Path
) -> None:
    walk = Walk(deployment, tmp_path / "results", "--process")
    for after in (BASELINE, REPLACED):
        walk.until("[tool]", after)
        deployment.kill()
        deployment.start()
    walk.ended()
    walk.check_success(PLACE)
    assert walk.lines.count("The stream ended; following the durable history instead.") == 2
    walk.check_gone(archived_session=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_in_the_middle_of_a_turn_clears_all_away(
    deployment: Deployment, tmp_path: Path, number: signal.Signals
) -> None:
    walk = Walk(deployment, tmp_path / "results", "--process")
    walk.until("[tool]")
    walk.process.send_signal(number)
    assert walk.ended() == 1
    assert f"coding-agent: stopped by {number.name}" in walk.lines
    assert any(event["type"] == "agent.tool_use" for event in walk.events)
    assert re.search(r"ended with exit code (0|-15)\n", (walk.folder / "worker.log").read_text())
    walk.check_gone(archived_session=False)


def test_a_worker_that_dies_fails_the_example(deployment: Deployment, tmp_path: Path) -> None:
    walk = Walk(deployment, tmp_path / "results", "--process")
    walk.until("[tool]")
    pid = re.search(r"supervisor (\d+) started", (walk.folder / "worker.log").read_text())
    assert pid is not None
    subprocess.run(["kill", "-KILL", pid[1]], check=True)
    assert walk.ended() == 1
    assert "the worker ended on its own with exit code -9" in walk.text
    walk.check_gone(archived_session=False)


def test_a_server_that_is_gone_for_good_fails_the_clean_up(deployment: Deployment, tmp_path: Path) -> None:
    walk = Walk(deployment, tmp_path / "results", "--process")
    walk.until("[tool]")
    deployment.stop()
    walk.process.send_signal(signal.SIGTERM)
    assert walk.ended() == 1
    recorded = walk.resources
    for what in (
        "saving the history",
        f"deleting session {recorded['session']}",
        f"archiving agent {recorded['agent']}",
    ):
        assert f"coding-agent: {what} failed: " in walk.text


def test_the_demo_ends_the_server_that_it_started(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, str(PROJECT / "scripts/demo"), "--process"], stdout=subprocess.PIPE, text=True
    )
    watchdog = threading.Timer(MAX_SECONDS, demo.kill)
    watchdog.start()
    url = ""
    assert demo.stdout is not None
    for line in demo.stdout:
        if found := re.search(r"mango up listens on (http://\S+),", line):
            url = found[1]
        if line.startswith("[tool]"):
            assert server_answers(url)
            demo.terminate()
            break
    rest = demo.stdout.read()
    assert demo.wait(MAX_SECONDS) == 128 + signal.SIGTERM
    watchdog.cancel()
    demo.stdout.close()
    assert "Stopping and cleaning up..." in rest
    deadline = time.monotonic() + 5
    while server_answers(url):
        assert time.monotonic() < deadline
