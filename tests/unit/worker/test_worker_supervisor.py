"""The claim loop over a sandbox that only pretends, and the supervisor without Docker as a process."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mango_worker.api import Api
from mango_worker.errors import SandboxError, SandboxNotReady, WorkerError
from mango_worker.supervisor.claims import Claims
from mango_worker.supervisor.details import last_words
from mango_worker.supervisor.loop import Supervisor
from mango_worker.supervisor.processes import inherited_environment
from mango_worker.supervisor.sandbox import Ended
from mango_worker.supervisor.work import WorkItem
from tests.unit.worker.stub_api import ENVIRONMENT, KEY, TOKEN, StubApi


class Pretended:
    """A sandbox and its running item; `not_ready` and `broken` are what goes wrong."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.code = 0
        self.not_ready = ""
        self.broken = ""
        self.over = threading.Event()
        self.over.set()

    def check(self) -> list[str]:
        return []

    def sweep(self) -> int:
        return 0

    def prepare(self, item: WorkItem) -> list[str]:
        self.calls.append("prepare")
        if self.not_ready:
            raise SandboxNotReady(self.not_ready)
        return []

    def start(self, item: WorkItem) -> "Pretended":
        self.calls.append("start")
        if self.broken:
            raise SandboxError(self.broken)
        return self

    def wait(self, stop: threading.Event) -> Ended | None:
        while not self.over.wait(0.01):
            if stop.is_set():
                return None
        return Ended(self.code, ("a last word",) if self.code else ())

    def stop(self, grace: float) -> Ended:
        self.calls.append("stop")
        return Ended(0)

    def remove(self) -> None:
        self.calls.append("remove")


class Loop:
    """A claim loop in a thread of its own."""

    def __init__(self, url: str, sandbox: Pretended, drain: bool = False, key: str = KEY) -> None:
        self.said: list[str] = []
        self.stop = threading.Event()
        self.failure: WorkerError | None = None
        self._api = Api(url, key, "worker-1")
        self._loop = Supervisor(Claims(self._api, ENVIRONMENT), sandbox, self.stop, self.said.append, url, drain)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._loop.serve()
        except WorkerError as error:
            self.failure = error

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()
        self._api.close()


Begin = Callable[..., Loop]


@pytest.fixture
def sandbox() -> Pretended:
    return Pretended()


@pytest.fixture
def begin(stub: StubApi, sandbox: Pretended) -> Iterator[Begin]:
    loops: list[Loop] = []

    def go(url: str = stub.url, drain: bool = False, key: str = KEY) -> Loop:
        loops.append(Loop(url, sandbox, drain, key))
        return loops[-1]

    yield go
    for loop in loops:
        loop.stop.set()
        loop.join()


def test_an_item_from_claim_to_removal(stub: StubApi, sandbox: Pretended, begin: Begin) -> None:
    stub.add_work()
    loop = begin(drain=True)
    loop.join()
    assert loop.said == [
        "work work_1 claimed (session sesn_1)",
        "work work_1 started",
        "work work_1 ended (exit 0: finished)",
    ]
    assert sandbox.calls == ["prepare", "start", "remove"]
    poll = stub.seen("GET", "/poll$")[0]
    assert poll.headers["anthropic-worker-id"] == "worker-1"
    assert poll.query == {"reclaim_older_than_ms": ["30000"]}


def test_polling_waits_at_the_server(stub: StubApi, begin: Begin) -> None:
    begin()
    stub.wait_for(lambda: stub.seen("GET", "/poll$"))
    assert stub.seen("GET", "/poll$")[0].query["block_ms"] == ["999"]


def test_what_went_wrong_is_told(stub: StubApi, sandbox: Pretended, begin: Begin) -> None:
    sandbox.code = 3
    stub.add_work()
    loop = begin(drain=True)
    loop.join()
    assert loop.said[-2:] == ["work work_1 said: a last word", "work work_1 ended (exit 3: lease lost)"]


def test_a_workspace_that_is_not_there_leaves_the_item_unacknowledged(
    stub: StubApi, sandbox: Pretended, begin: Begin
) -> None:
    sandbox.not_ready = "/staged/sesn_1 does not exist"
    stub.add_work()
    loop = begin(drain=True)
    loop.join()
    assert loop.said[-1] == "work work_1 left alone: /staged/sesn_1 does not exist"
    assert not stub.seen("POST", "/ack$")


def test_a_sandbox_that_does_not_start(stub: StubApi, sandbox: Pretended, begin: Begin) -> None:
    sandbox.broken = "Docker said: no space left"
    stub.add_work()
    loop = begin(drain=True)
    loop.join()
    assert loop.said[-1] == "work work_1 failed: Docker said: no space left"
    assert sandbox.calls == ["prepare", "start"]


def test_a_lost_answer_to_the_acknowledgement(stub: StubApi, sandbox: Pretended, begin: Begin) -> None:
    stub.fail("POST", "/ack$", None, before=False)
    stub.add_work()
    begin(drain=True).join()
    assert "start" in sandbox.calls and len(stub.seen("POST", "/ack$")) == 2


@pytest.mark.parametrize("status", [404, 409])
def test_an_item_that_somebody_else_has(stub: StubApi, sandbox: Pretended, begin: Begin, status: int) -> None:
    stub.fail("POST", "/ack$", status)
    stub.add_work()
    loop = begin(drain=True)
    loop.join()
    assert "abandoned" in loop.said[-1] and sandbox.calls == ["prepare"]


def test_an_item_that_is_no_session_is_given_back(stub: StubApi, sandbox: Pretended, begin: Begin) -> None:
    work = stub.add_work(kind="healthcheck")
    begin(drain=True).join()
    assert work.state == "stopped" and work.stops == [{"force": True}] and sandbox.calls == []


def test_being_told_to_stop_while_an_item_runs(stub: StubApi, sandbox: Pretended, begin: Begin) -> None:
    sandbox.over.clear()
    stub.add_work()
    loop = begin()
    stub.wait_for(lambda: "start" in sandbox.calls)
    loop.stop.set()
    loop.join()
    assert sandbox.calls == ["prepare", "start", "stop", "remove"]


def test_a_server_that_is_away_is_mentioned_once(stub: StubApi, begin: Begin) -> None:
    stub.fail("GET", "/poll$", 503, times=2)
    stub.fail("GET", "/poll$", None)
    loop = begin(drain=True)
    loop.join()
    assert [line for line in loop.said if "cannot reach" in line] == loop.said[:1]
    assert loop.said[-1].endswith("answers again") and len(loop.said) == 2


@pytest.mark.parametrize(("status", "words"), [(401, "the key"), (403, "the key"), (404, "environment")])
def test_a_refusal_ends_the_supervisor(stub: StubApi, begin: Begin, status: int, words: str) -> None:
    stub.fail("GET", "/poll$", status)
    loop = begin()
    loop.join()
    assert loop.failure is not None and words in str(loop.failure) and KEY not in str(loop.failure)


def test_last_words_hold_no_secret_and_nothing_foreign() -> None:
    item = WorkItem("work_1", "env_1", "session", "sesn_1", "c2VjcmV0")
    raw = b"forged\nmango-worker: c2VjcmV0 \x1b[2Jfailed\n"
    assert last_words(raw, 1, item) == ("[credential]  [2Jfailed",)
    assert last_words(raw, 0, item) == ()


def test_the_operators_environment_stays_outside() -> None:
    kept = inherited_environment({"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x", "MANGO_X": "y"})
    assert kept == {"PATH": "/bin", "LC_ALL": "C"}


# The supervisor without Docker, as an operator starts it.

Supervise = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def supervise(stub: StubApi, tmp_path: Path) -> Iterator[Supervise]:
    started: list[subprocess.Popen[str]] = []

    def go(*arguments: str, key: str = KEY, environment: str = ENVIRONMENT) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "mango_worker", "process", *arguments],
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={
                "PATH": os.environ["PATH"], "HOME": str(tmp_path), "MANGO_ENVIRONMENT_KEY": key,
                "MANGO_ENVIRONMENT_ID": environment, "MANGO_BASE_URL": stub.url, "PLANTED": "operator's own",
            },
        )  # fmt: skip
        started.append(process)
        return process

    yield go
    for process in started:
        process.kill()
        process.communicate()


def test_without_consent_it_does_not_run(stub: StubApi, supervise: Supervise) -> None:
    process = supervise()
    _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "no security boundary" in said.splitlines()[0] and "--unsandboxed" in said
    assert stub.requests == []


def test_a_session_without_docker(stub: StubApi, supervise: Supervise, tmp_path: Path) -> None:
    stub.add_work()
    process = supervise("--unsandboxed", "--max-idle", "200ms", "--workspace-root", str(tmp_path / "root"))
    call = stub.call("bash", {"command": "env; echo here > file"})
    stub.wait_for_result(call)
    stub.idle()
    stub.wait_for(lambda: stub.works["work_1"].state == "stopped")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "no security boundary" in said.splitlines()[0]
    assert KEY not in said and TOKEN not in said
    assert (tmp_path / "root" / "sesn_1" / "file").read_text() == "here\n"
    for secret in ("MANGO", "PLANTED", KEY, TOKEN):
        assert secret not in stub.text(call)


def test_the_workspace_is_kept_below_the_home_directory(stub: StubApi, supervise: Supervise, tmp_path: Path) -> None:
    stub.add_work()
    supervise("--unsandboxed")
    call = stub.call("bash", {"command": "pwd"})
    stub.wait_for_result(call)
    assert stub.text(call) == f"{tmp_path}/.local/state/mango/worker/workspaces/sesn_1\n"


def test_a_killed_supervisor_takes_its_item_along(stub: StubApi, supervise: Supervise, tmp_path: Path) -> None:
    stub.add_work()
    process = supervise("--unsandboxed", "--workspace-root", str(tmp_path))
    call = stub.call("bash", {"command": "touch begun; sleep 999"})
    stub.wait_for((tmp_path / "sesn_1" / "begun").exists)
    process.kill()
    assert stub.wait_for_result(call)["is_error"]
    stub.wait_for(lambda: stub.works["work_1"].state == "stopped")
    stub.add_work("work_2")
    following = stub.call("bash", {"command": "echo next"})
    supervise("--unsandboxed", "--workspace-root", str(tmp_path))
    stub.wait_for_result(following)
    assert stub.text(following) == "next\n"


def test_sigterm_while_a_tool_runs(stub: StubApi, supervise: Supervise, tmp_path: Path) -> None:
    stub.add_work()
    process = supervise("--unsandboxed", "--workspace-root", str(tmp_path))
    call = stub.call("bash", {"command": "touch begun; sleep 999"})
    stub.wait_for((tmp_path / "sesn_1" / "begun").exists)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0 and "stopped" in said
    assert "the worker was stopped" in stub.text(call) and stub.works["work_1"].state == "stopped"


def test_a_refused_key(supervise: Supervise) -> None:
    process = supervise("--unsandboxed", key="wrong-key")
    _, said = process.communicate(timeout=20)
    assert process.returncode == 1 and "refused the key in MANGO_ENVIRONMENT_KEY" in said and "wrong-key" not in said


def test_an_item_process_that_cannot_reach_the_api_says_so(stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    stub.fail("POST", "/heartbeat$", 401)
    process = supervise("--unsandboxed", "--drain")
    _, said = process.communicate(timeout=20)
    assert "work work_1 said: lease lost: planted fault (HTTP 401)" in said
    assert "work work_1 ended (exit 3: lease lost)" in said
