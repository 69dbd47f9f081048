"""`mango-worker docker` against a real engine: the life of an item, and what becomes of it when something dies."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.docker.conftest import Supervise
from tests.unit.worker.stub_api import KEY, TOKEN, StubApi

pytestmark = pytest.mark.docker

Inspect = Callable[[], dict[str, Any]]
SLEEP = {"command": "touch begun; sleep 999"}


def containers(engine: docker.DockerClient, stub: StubApi) -> list[Any]:
    return list(
        engine.containers.list(all=True, ignore_removed=True, filters={"label": f"io.mango.session-id={stub.session}"})
    )


def run(stub: StubApi, command: str) -> str:
    call = stub.call("bash", {"command": command})
    stub.wait_for_result(call)
    return stub.text(call)


def sleeping(engine: docker.DockerClient, stub: StubApi) -> str:
    """A call that is running for certain: it has left a trace."""
    call = stub.call("bash", SLEEP)
    stub.wait_for(lambda: [one for one in containers(engine, stub) if one.status == "running"])
    (container,) = containers(engine, stub)
    stub.wait_for(lambda: container.exec_run(["test", "-e", "/workspace/begun"]).exit_code == 0)
    return call


def test_a_session_from_claim_to_removal(engine: docker.DockerClient, stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    supervisor = supervise("--max-idle", "200ms", "--drain")
    command = "echo out; echo kept > file; pwd; python3 -c 'print(1+1)'; rg --version | grep -o ^ripgrep"
    assert run(stub, command) == "out\n/workspace\n2\nripgrep\n"
    stub.idle()
    code, said = supervisor.ended()
    assert code == 0
    assert (
        f"work work_1{stub.suffix} claimed (session {stub.session})" in said
        and f"work work_1{stub.suffix} ended (exit 0: finished)" in said
    )
    assert KEY not in said and TOKEN not in said
    assert containers(engine, stub) == [] and stub.works["work_1"].stops == [{"force": True}]


def test_files_stay_and_processes_do_not(stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    supervisor = supervise("--max-idle", "200ms")
    run(stub, "echo kept > file; export A=1")
    stub.idle()
    stub.wait_for(lambda: stub.works["work_1"].state == "stopped")
    stub.add_event("session.status_running")
    stub.add_work("work_2")
    assert run(stub, "cat file; echo x$A") == "kept\nx\n"
    assert supervisor.stop()[0] == 0


def test_sigterm_while_a_tool_runs(engine: docker.DockerClient, stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    supervisor = supervise()
    call = sleeping(engine, stub)
    before = time.monotonic()
    code, said = supervisor.stop()
    assert code == 0 and f"work work_1{stub.suffix} stopping" in said
    assert time.monotonic() - before < 15
    assert "the worker was stopped" in stub.text(call) and stub.works["work_1"].state == "stopped"
    assert containers(engine, stub) == []


def test_a_killed_supervisor_is_replaced(engine: docker.DockerClient, stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    first = supervise()
    call = sleeping(engine, stub)
    first.process.kill()
    first.ended()
    assert len(containers(engine, stub)) == 1
    second = supervise()
    # The leftover is asked to end: it reports its call and gives the item up instead of letting the lease run out.
    assert "the worker was stopped" in (stub.wait_for_result(call), stub.text(call))[1]
    stub.wait_for(lambda: stub.works["work_1"].state == "stopped")
    stub.add_work("work_2")
    assert run(stub, "echo next") == "next\n"
    assert [one.name for one in containers(engine, stub)] == [f"mango-work_2{stub.suffix}"]
    code, said = second.stop()
    assert code == 0 and "removed 1 leftover of an earlier run" in said


def test_another_supervisors_containers_are_left_alone(
    engine: docker.DockerClient, stub: StubApi, supervise: Supervise
) -> None:
    stub.add_work()
    supervise("--worker-id", f"mine{stub.suffix}")
    sleeping(engine, stub)
    code, said = supervise("--worker-id", f"other{stub.suffix}", "--drain").ended()
    assert code == 0 and "leftover" not in said
    assert [one.status for one in containers(engine, stub)] == ["running"]
    code, said = supervise("--worker-id", f"mine{stub.suffix}").ended()
    assert code == 1 and f"another supervisor on this machine goes by --worker-id mine{stub.suffix}" in said


def test_a_killed_container(engine: docker.DockerClient, stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    supervisor = supervise()
    sleeping(engine, stub)
    containers(engine, stub)[0].kill()
    stub.wait_for(lambda: containers(engine, stub) == [])
    assert f"work work_1{stub.suffix} ended (exit 137)" in supervisor.stop()[1]


def test_a_leftover_of_an_earlier_claim_makes_way(
    engine: docker.DockerClient, image: str, stub: StubApi, supervise: Supervise
) -> None:
    labels = {
        "io.mango.self-hosted-worker": "true",
        "io.mango.session-id": stub.session,
        "io.mango.supervisor": "elsewhere",
    }
    engine.containers.create(image, name=f"mango-work_1{stub.suffix}", labels=labels)
    stub.add_work()
    supervise()
    assert run(stub, "echo fresh") == "fresh\n"


def test_a_foreign_container_of_that_name_does_not(
    engine: docker.DockerClient, image: str, stub: StubApi, supervise: Supervise
) -> None:
    foreign = engine.containers.create(image, name=f"mango-work_1{stub.suffix}")
    try:
        stub.add_work()
        _, said = supervise("--drain").ended()
        assert f"a container named mango-work_1{stub.suffix} exists and is none of ours" in said
        foreign.reload()
    finally:
        foreign.remove(force=True)


def test_a_fork_bomb_is_ended_and_the_session_goes_on(stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    supervise("--pids-limit", "100")
    call = stub.call("bash", {"command": "f() { sleep 998 & f & f & }; f; sleep 999", "timeout_ms": 500})
    result = stub.wait_for_result(call)
    assert result["is_error"] and "could not be killed" not in stub.text(call)
    assert run(stub, "ps -e | grep -c 'sleep' || true; echo alive").endswith("alive\n")


def test_running_out_of_memory_is_survived(stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    supervise("--memory-bytes", str(256 << 20))
    assert "exit code: 137" in run(stub, "python3 -c \"x = 'x' * (1 << 30)\"")
    assert run(stub, "echo alive") == "alive\n"


def test_an_api_that_containers_cannot_reach(stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    supervisor = supervise("--sandbox-base-url", "http://host.docker.internal:9", "--drain")
    code, said = supervisor.ended()
    assert code == 0
    assert f"work work_1{stub.suffix} said: http://host.docker.internal:9 cannot be reached" in said
    assert f"work work_1{stub.suffix} ended (exit 4: API not reachable from the sandbox)" in said


def test_an_image_that_is_not_there(supervise: Supervise) -> None:
    code, said = supervise("--image", "no-such-image:local").ended()
    assert code == 1 and "no-such-image:local is not here; build it with: make worker-image" in said
    assert "Traceback" not in said


def test_an_engine_that_does_not_answer(supervise: Supervise, tmp_path: Path) -> None:
    code, said = supervise(DOCKER_HOST=f"unix://{tmp_path}/none.sock").ended()
    assert code == 1 and "Docker does not answer" in said and "Traceback" not in said


def test_interrupting_from_the_terminal(stub: StubApi, supervise: Supervise) -> None:
    supervisor = supervise()
    stub.wait_for(lambda: stub.seen("GET", "/poll$"))
    supervisor.process.send_signal(signal.SIGINT)
    code, said = supervisor.ended()
    assert code == 0 and said.endswith("stopped\n")
