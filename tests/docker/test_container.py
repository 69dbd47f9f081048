"""What a session's container may do and see: read back from the engine, and tried from inside."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.docker.conftest import Supervise
from tests.unit.worker.stub_api import ENVIRONMENT, KEY, TOKEN, StubApi

pytestmark = pytest.mark.docker

Inspect = Callable[[], dict[str, Any]]


def run(stub: StubApi, command: str) -> str:
    call = stub.call("bash", {"command": command})
    stub.wait_for_result(call)
    return stub.text(call)


def test_the_settings_as_the_engine_has_them(stub: StubApi, supervise: Supervise, container: Inspect) -> None:
    work = stub.add_work()
    supervise(
        "--memory-bytes",
        "536870912",
        "--nano-cpus",
        "500000000",
        "--pids-limit",
        "128",
        "--worker-id",
        f"w{stub.suffix}",
    )
    run(stub, "true")
    found = container()
    host, config = found["HostConfig"], found["Config"]
    assert host["ReadonlyRootfs"] is True and host["Privileged"] is False
    assert host["CapDrop"] == ["ALL"] and not host["CapAdd"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Memory"] == host["MemorySwap"] == 536870912
    assert host["NanoCpus"] == 500000000 and host["PidsLimit"] == 128
    assert host["Init"] is True and host["IpcMode"] == "private" and host["NetworkMode"] == "bridge"
    assert host["ExtraHosts"] == ["host.docker.internal:host-gateway"]
    assert not host["PortBindings"] and host["PublishAllPorts"] is False and not host["Devices"]
    assert host["PidMode"] == host["UTSMode"] == host["UsernsMode"] == ""
    assert {"nosuid", "nodev"} <= set(host["Tmpfs"]["/tmp"].split(","))
    assert [(one["Type"], one["Name"], one["Destination"]) for one in found["Mounts"]] == [
        ("volume", f"mango-ws-{stub.session}", "/workspace")
    ]
    assert config["User"] == "65532:65532" and found["Name"] == f"/mango-{work.id}"
    labels = config["Labels"]
    assert labels["io.mango.self-hosted-worker"] == "true" and labels["io.mango.supervisor"] == f"w{stub.suffix}"
    assert labels["io.mango.work-id"] == work.id and labels["io.mango.session-id"] == stub.session
    assert labels["io.mango.environment-id"] == ENVIRONMENT
    assert (found["Path"], found["Args"][-1]) == ("/usr/local/bin/mango-worker", "run")


def test_the_settings_from_inside(stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    supervise()
    assert run(stub, "id -u; id -g; id -G") == "65532\n65532\n65532\n"
    status = run(stub, "cat /proc/self/status")
    assert "CapEff:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    for command in ("touch /x", "touch /usr/bin/x", "touch /opt/x", "mount -t tmpfs x /mnt", "chown 0 ."):
        assert "exit code:" in run(stub, command), command
    assert run(stub, "touch /tmp/x /workspace/x && echo ok") == "ok\n"
    assert "nosuid,nodev" in run(stub, "grep ' /tmp ' /proc/mounts")
    assert "No space left" in run(stub, "head -c 100000000 /dev/zero > /tmp/big")
    assert run(stub, "rm /tmp/big; ls /var/run/docker.sock").startswith("ls: cannot access")
    assert run(stub, "python3 -c 'import mango_worker'").endswith("exit code: 1")


def test_the_credential_is_nowhere_to_be_seen(
    engine: docker.DockerClient, stub: StubApi, supervise: Supervise, container: Inspect
) -> None:
    stub.add_work()
    supervisor = supervise()
    # From inside: every process's arguments, environment, memory and descriptors, as far as they can be opened.
    look = """
        for p in /proc/[0-9]*; do cat $p/environ $p/cmdline 2>/dev/null; done | tr '\\0' '\\n' | grep -c '[s]ess_mango_'
        for p in /proc/[0-9]*; do ls $p/fd >/dev/null 2>&1 && echo open: $(tr '\\0' ' ' < $p/cmdline); done
        head -c 1 /proc/$PPID/mem 2>&1
        grep -r '[s]ess_mango_' /tmp /workspace /opt 2>/dev/null
        env | grep -i mango
    """
    said = run(stub, look)
    assert said.startswith("0\n") and "Permission denied" in said
    opened = [line for line in said.splitlines() if line.startswith("open: ")]
    assert opened and all("mango-worker" not in line or "docker-init" in line for line in opened)
    # From outside: all that the engine keeps.
    found = container()
    assert TOKEN not in json.dumps(found) and KEY not in json.dumps(found)
    encoded = json.dumps(stub.show(stub.works["work_1"], secret=True)["secret"]).strip('"')
    assert encoded not in json.dumps(found)
    logs = engine.api.logs(found["Id"])
    assert TOKEN.encode() not in logs and encoded.encode() not in logs
    for entry in Path("/proc").glob("[0-9]*"):
        for name in ("environ", "cmdline"):
            try:
                content = (entry / name).read_bytes()
            except OSError:
                continue
            assert encoded.encode() not in content and TOKEN.encode() not in content
    _, words = supervisor.stop()
    assert TOKEN not in words and encoded not in words and KEY not in words


def test_a_debugger_cannot_attach_to_the_item_process(stub: StubApi, supervise: Supervise) -> None:
    stub.add_work()
    supervise()
    attach = (
        'python3 -c "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); '
        "print(c.ptrace(16, int(os.environ['P']), 0, 0), os.strerror(ctypes.get_errno()))\""
    )
    assert run(stub, f"P=$PPID {attach}") == "-1 Operation not permitted\n"


@pytest.mark.parametrize("user", ["65532:65532", "1234:5678", "0:0"])
def test_the_user_owns_a_volume(stub: StubApi, supervise: Supervise, user: str) -> None:
    stub.add_work()
    supervisor = supervise("--user", user)
    assert run(stub, "stat -c %u:%g . && touch file && stat -c %u:%g file") == f"{user}\n{user}\n"
    assert supervisor.stop()[0] == 0


def test_a_volume_follows_another_user(stub: StubApi, supervise: Supervise) -> None:
    for number, user in enumerate(("65532:65532", "1234:5678", "65532:65532", "1234:5678")):
        stub.add_work(f"work_{number}")
        supervisor = supervise("--user", user)
        own = "mkdir -p d && echo x >> d/file && ln -sf /etc/passwd link && stat -c %u:%g . d d/file"
        assert run(stub, own) == f"{user}\n{user}\n{user}\n"
        assert supervisor.stop()[0] == 0


def test_a_staged_workspace_is_used_and_not_touched(stub: StubApi, supervise: Supervise, tmp_path: Path) -> None:
    staged = tmp_path / "root" / stub.session
    staged.mkdir(parents=True)
    (staged / "input").write_text("from the operator\n")
    subprocess.run(["chown", "-R", "4321:8765", str(staged)], check=True)
    stub.add_work()
    supervisor = supervise("--workspace-root", str(tmp_path / "root"), "--user", "4321:8765")
    assert run(stub, "cat input; echo out > output") == "from the operator\n"
    assert (staged / "output").read_text() == "out\n"
    info = (staged / "output").stat()
    assert (info.st_uid, info.st_gid) == (4321, 8765)
    code, said = supervisor.stop()
    assert code == 0 and "not writable" not in said and (staged / "input").stat().st_uid == 4321


def test_a_staged_workspace_of_somebody_else_is_remarked(stub: StubApi, supervise: Supervise, tmp_path: Path) -> None:
    staged = tmp_path / "root" / stub.session
    staged.mkdir(parents=True)
    stub.add_work()
    supervisor = supervise("--workspace-root", str(tmp_path / "root"))
    assert "Permission denied" in run(stub, "touch file")
    assert f"{staged} is not writable for 65532:65532" in supervisor.stop()[1]
    assert staged.stat().st_uid == 0


def test_a_staged_workspace_that_is_missing(stub: StubApi, supervise: Supervise, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    work = stub.add_work()
    code, said = supervise("--workspace-root", str(tmp_path / "root"), "--drain").ended()
    assert code == 0 and f"work {work.id} left alone: {tmp_path}/root/{stub.session} does not exist" in said
    assert not stub.seen("POST", "/ack$") and list((tmp_path / "root").iterdir()) == []


def test_a_workspace_root_that_is_missing(supervise: Supervise, tmp_path: Path) -> None:
    code, said = supervise("--workspace-root", str(tmp_path / "nowhere")).ended()
    assert code == 1 and "is no directory" in said
