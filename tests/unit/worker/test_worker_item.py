"""The item process, as a process, against a server that speaks the work protocol."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mango_worker.frame import encode_frame
from mango_worker.item.outcome import Outcome
from tests.unit.worker.stub_api import ENVIRONMENT, SESSION, TOKEN, StubApi

Start = Callable[..., "subprocess.Popen[bytes]"]
BOUND = 20.0


def secret(token: str = TOKEN) -> bytes:
    return base64.urlsafe_b64encode(json.dumps({"sessions_token": token}).encode())


@pytest.fixture
def start(stub: StubApi, workspace: Path) -> Iterator[Start]:
    """Start `mango-worker run` for work_1, which has been acknowledged."""
    started: list[subprocess.Popen[bytes]] = []

    def go(max_idle: str = "1h", payload: bytes | None = None, **environment: str) -> "subprocess.Popen[bytes]":
        if "work_1" not in stub.works:
            stub.add_work().state = "starting"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mango_worker", "run"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=workspace,
            env={
                "PATH": os.environ["PATH"], "MANGO_SANDBOXED": "1", "MANGO_BASE_URL": stub.url,
                "MANGO_WORK_ID": "work_1", "MANGO_ENVIRONMENT_ID": ENVIRONMENT, "MANGO_SESSION_ID": SESSION,
                "MANGO_WORKDIR": str(workspace), "MANGO_WORKER_MAX_IDLE": max_idle, **environment,
            },
        )  # fmt: skip
        started.append(process)
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(encode_frame(secret()) if payload is None else payload)
        process.stdin = None
        return process

    yield go
    for process in started:
        process.kill()
        process.communicate()


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, str]:
    _, errors = process.communicate(timeout=BOUND)
    assert TOKEN not in errors.decode()
    return process.returncode, errors.decode()


def stopped(stub: StubApi) -> list[Any]:
    return stub.works["work_1"].stops


def started_sleeping(workspace: Path) -> Callable[[], bool]:
    return (workspace / "begun").exists


SLEEP = {"command": "touch begun; sleep 999"}


def test_a_call_from_claim_to_stop(stub: StubApi, start: Start) -> None:
    call = stub.call("bash", {"command": "echo out"})
    process = start(max_idle="300ms")
    result = stub.wait_for_result(call)
    assert result["is_error"] is False and result["content"] == [{"type": "text", "text": "out\n"}]
    stub.idle()
    assert ended(process)[0] == Outcome.FINISHED
    assert stopped(stub) == [{"force": True}]
    kinds = [(one.method, one.path.split("/")[-1]) for one in stub.requests]
    assert kinds[:4] == [("POST", "heartbeat"), ("GET", SESSION), ("GET", "stream"), ("GET", "events")]
    assert {one.token for one in stub.requests} == {TOKEN}


def test_only_what_is_open_is_run_and_in_order(stub: StubApi, start: Start, workspace: Path) -> None:
    answered = stub.call("bash", {"command": "touch again"})
    stub.add_event("user.tool_result", tool_use_id=answered, is_error=False, content=[])
    stub.call("bash", {"command": "touch never"}, evaluated_permission="deny")
    waiting = stub.call("write", {"file_path": "log", "content": "x"}, evaluated_permission="ask")
    first = stub.call("bash", {"command": "sleep 0.2; echo 1 >> order"}, evaluated_permission=None)
    second = stub.call("bash", {"command": "echo 2 >> order"})
    stub.add_event("agent.custom_tool_use", name="bash", input={"command": "touch custom"})
    stub.add_event("agent.mcp_tool_use", name="bash", input={"command": "touch mcp"})
    stub.page_size = 3
    start()
    stub.wait_for_result(first)
    stub.wait_for_result(second)
    assert not stub.results(waiting)
    stub.add_event("user.tool_confirmation", tool_use_id=waiting, result="allow")
    stub.wait_for_result(waiting)
    assert (workspace / "order").read_text() == "1\n2\n"
    assert sorted(path.name for path in workspace.iterdir()) == ["log", "order"]
    assert len(stub.results()) == 4


def test_a_refused_confirmation_is_not_answered(stub: StubApi, start: Start) -> None:
    call = stub.call("bash", {"command": "true"}, evaluated_permission="ask")
    start()
    stub.add_event("user.tool_confirmation", tool_use_id=call, result="deny")
    later = stub.call("bash", {"command": "true"})
    stub.wait_for_result(later)
    assert not stub.results(call)


def test_bad_input_is_answered_and_others_tools_are_not(stub: StubApi, start: Start) -> None:
    foreign = stub.call("web_search", {"query": "x"})
    inputs: list[Any] = [None, [], {"command": 5}, {"command": "echo \ud99c"}]
    calls = [stub.call("bash", arguments) for arguments in inputs]
    start()
    assert [stub.wait_for_result(call)["is_error"] for call in calls] == [True, True, True, False]
    assert not stub.results(foreign)


def test_the_stream_is_opened_again_and_nothing_runs_twice(stub: StubApi, start: Start, workspace: Path) -> None:
    stub.fail("GET", "/events/stream", 503)
    first = stub.call("bash", {"command": "echo x >> log"})
    start()
    stub.wait_for_result(first)
    stub.fail("GET", "/events$", 500)
    stub.cut_streams()
    second = stub.call("bash", {"command": "echo x >> log"})
    stub.wait_for_result(second)
    assert (workspace / "log").read_text() == "x\nx\n"


@pytest.mark.parametrize("status", [None, 500, 429])
@pytest.mark.parametrize("before", [True, False])
def test_an_ambiguous_post_counts_once(stub: StubApi, start: Start, status: int | None, before: bool) -> None:
    stub.fail("POST", "/events$", status, before)
    call = stub.call("bash", {"command": "echo once"})
    start()
    stub.wait_for_result(call)
    following = stub.call("bash", {"command": "echo next"})
    stub.wait_for_result(following)
    assert len(stub.results(call)) == 1
    assert len(stub.seen("POST", "/events$")) == (3 if before else 2)


def test_a_refused_content_becomes_a_reason(stub: StubApi, start: Start) -> None:
    stub.fail("POST", "/events$", 413)
    call = stub.call("bash", {"command": "echo x"})
    start()
    assert stub.wait_for_result(call)["is_error"] and "HTTP 413" in stub.text(call)


def test_a_call_that_was_closed_elsewhere_is_broken_off(stub: StubApi, start: Start, workspace: Path) -> None:
    call = stub.call("bash", SLEEP)
    start()
    stub.wait_for(started_sleeping(workspace))
    stub.add_event("user.tool_result", tool_use_id=call, is_error=True, content=[])
    following = stub.call("bash", {"command": "echo next"})
    stub.wait_for_result(following)
    assert len(stub.results(call)) == 1
    assert len(stub.seen("POST", "/events$")) == 1


def test_an_interrupt_breaks_off_and_what_waits_does_not_run(stub: StubApi, start: Start, workspace: Path) -> None:
    running, waiting = stub.call("bash", SLEEP), stub.call("bash", {"command": "touch never"})
    start()
    stub.wait_for(started_sleeping(workspace))
    before = time.monotonic()
    stub.add_event("user.interrupt")
    assert stub.wait_for_result(running)["is_error"] and stub.wait_for_result(waiting)["is_error"]
    assert time.monotonic() - before < 2
    assert "interrupted by the user" in stub.text(running) and "interrupted by the user" in stub.text(waiting)
    assert not (workspace / "never").exists()


def test_a_server_that_closes_interrupted_calls_itself(stub: StubApi, start: Start, workspace: Path) -> None:
    running = stub.call("bash", SLEEP)
    process = start(max_idle="200ms")
    stub.wait_for(started_sleeping(workspace))
    with stub.lock:
        stub.add_event("user.interrupt")
        stub.add_event("user.tool_result", tool_use_id=running, is_error=True, content=[])
        stub.idle()
    assert ended(process)[0] == Outcome.FINISHED
    assert len(stub.results(running)) == 1


@pytest.mark.parametrize("kind", ["session.deleted", "session.status_terminated"])
def test_the_end_of_the_session(stub: StubApi, start: Start, workspace: Path, kind: str) -> None:
    call = stub.call("bash", SLEEP)
    process = start()
    stub.wait_for(started_sleeping(workspace))
    stub.add_event(kind)
    assert ended(process)[0] == Outcome.FINISHED
    assert not stub.results(call) and stopped(stub) == [{"force": True}]


def test_a_session_that_is_terminated_already(stub: StubApi, start: Start) -> None:
    stub.session_status = "terminated"
    stub.call("bash", {"command": "true"})
    assert ended(start())[0] == Outcome.FINISHED
    assert not stub.results() and stopped(stub) == [{"force": True}]


def test_requires_action_is_no_rest(stub: StubApi, start: Start) -> None:
    process = start(max_idle="100ms")
    stub.idle("requires_action")
    stub.wait_for(lambda: stub.seen("GET", "/events$"))
    time.sleep(0.5)
    assert process.poll() is None
    call = stub.call("bash", {"command": "sleep 0.5"})
    stub.wait_for_result(call)
    assert process.poll() is None
    stub.idle()
    assert ended(process)[0] == Outcome.FINISHED


def test_a_stop_that_was_done_before(stub: StubApi, start: Start) -> None:
    stub.fail("POST", "/stop$", 503, before=False)
    stub.idle()
    assert ended(start(max_idle="100ms"))[0] == Outcome.FINISHED
    assert len(stub.seen("POST", "/stop$")) == 2


@pytest.mark.parametrize("status", [401, 403, 404, 410, 412])
def test_a_lost_lease_is_left_alone(stub: StubApi, start: Start, workspace: Path, status: int) -> None:
    stub.ttl = 1
    call = stub.call("bash", SLEEP)
    process = start()
    stub.wait_for(started_sleeping(workspace))
    stub.fail("POST", "/heartbeat$", status)
    code, errors = ended(process)
    assert code == Outcome.LEASE_LOST and "lease lost" in errors
    assert not stub.results(call) and not stub.seen("POST", "/stop$") and not stub.seen("POST", "/events$")


@pytest.mark.parametrize("status", [401, 403, 412])
def test_a_result_that_is_refused_for_the_lease(stub: StubApi, start: Start, status: int) -> None:
    stub.fail("POST", "/events$", status)
    stub.call("bash", {"command": "true"})
    assert ended(start())[0] == Outcome.LEASE_LOST
    assert not stub.seen("POST", "/stop$") and len(stub.seen("POST", "/events$")) == 1


def test_a_server_away_for_less_than_the_ttl(stub: StubApi, start: Start) -> None:
    stub.ttl = 4
    call = stub.call("bash", {"command": "sleep 2.5; echo through"})
    process = start()
    stub.wait_for(lambda: stub.works["work_1"].beats)
    stub.fail("POST", "/heartbeat$", None, before=False)
    stub.fail("POST", "/heartbeat$", 503)
    stub.wait_for_result(call)
    assert stub.text(call) == "through\n" and process.poll() is None


def test_a_server_away_for_longer_than_the_ttl(stub: StubApi, start: Start, workspace: Path) -> None:
    stub.ttl = 1
    stub.call("bash", SLEEP)
    process = start()
    stub.wait_for(started_sleeping(workspace))
    stub.fail("POST", "/heartbeat$", 503, times=1000)
    assert ended(process)[0] == Outcome.LEASE_LOST
    assert not stub.seen("POST", "/stop$")


def test_a_graceful_stop_reports_the_running_call(stub: StubApi, start: Start, workspace: Path) -> None:
    stub.ttl = 1
    call, untouched = stub.call("bash", SLEEP), stub.call("bash", {"command": "true"})
    process = start()
    stub.wait_for(started_sleeping(workspace))
    stub.works["work_1"].state = "stopping"
    assert ended(process)[0] == Outcome.FINISHED
    assert stub.results(call)[0]["is_error"] and "the worker was stopped" in stub.text(call)
    assert not stub.results(untouched) and stopped(stub) == [{"force": True}]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reports_the_running_call_and_stops(
    stub: StubApi, start: Start, workspace: Path, number: signal.Signals
) -> None:
    call, untouched = stub.call("bash", SLEEP), stub.call("bash", {"command": "true"})
    process = start()
    stub.wait_for(started_sleeping(workspace))
    before = time.monotonic()
    process.send_signal(number)
    assert ended(process)[0] == Outcome.FINISHED
    assert time.monotonic() - before < 5
    assert "the worker was stopped" in stub.text(call)
    assert not stub.results(untouched) and stopped(stub) == [{"force": True}]


def test_a_signal_while_the_server_is_away(stub: StubApi, start: Start, workspace: Path) -> None:
    stub.call("bash", SLEEP)
    process = start()
    stub.wait_for(started_sleeping(workspace))
    stub.fail("POST", "/(events|stop)$", 503, times=1000)
    process.send_signal(signal.SIGTERM)
    before = time.monotonic()
    process.wait(30)
    assert time.monotonic() - before < 15


@pytest.mark.parametrize("payload", [b"", b"\0\0\0\3abc", encode_frame(b"not base64 json"), b"\0\1\0\0"])
def test_without_a_credential_nothing_is_asked(stub: StubApi, start: Start, payload: bytes) -> None:
    code, errors = ended(start(payload=payload))
    assert code == Outcome.FAILED and "credential" in errors
    assert stub.requests == []


def test_started_by_hand(stub: StubApi, start: Start) -> None:
    code, errors = ended(start(MANGO_SANDBOXED=""))
    assert code == Outcome.FAILED and "started by a supervisor" in errors


def test_a_command_finds_the_credential_nowhere(stub: StubApi, start: Start) -> None:
    look = (
        "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '[s]ess_mango_'; "
        "env | grep -i mango"
    )
    call = stub.call("bash", {"command": look})
    start()
    stub.wait_for_result(call)
    assert stub.text(call).startswith("0\n")


def test_the_item_process_cannot_be_inspected(stub: StubApi, start: Start) -> None:
    process = start()
    stub.wait_for(lambda: stub.works["work_1"].beats)
    # A process that may be dumped owns its files under /proc; one that may not leaves them to root. This test may
    # itself run as root, so the owner tells nothing; the kernel's word does.
    script = (
        "import ctypes, sys; sys.path.insert(0, sys.argv[1]); from mango_worker import process_guard as g; "
        "g.forbid_inspection(); print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    root = str(Path(__file__).parents[3] / "worker")
    said = subprocess.run([sys.executable, "-c", script, root], capture_output=True, text=True, check=True)
    assert said.stdout == "0\n"
    assert process.poll() is None
