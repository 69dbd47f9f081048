"""An interrupt reaches a running tool, and the old call is not run again by whoever works next."""

from __future__ import annotations

import time
from pathlib import Path

from tests.scenario.test_worker_lost import ended, events_of
from tests.support.deployment import Deployment
from tests.support.invariants import check_history
from tests.support.workers import ProcessWorker, wait_until

SCRIPT = Path(__file__).parents[1] / "support" / "scripts" / "long_tool.py"


def test_interrupt_ends_a_running_tool(tmp_path: Path) -> None:
    root = tmp_path / "workspaces"
    with Deployment(tmp_path / "data", f"scripted:{SCRIPT}") as deployment:
        client = deployment.client()
        agent = client.beta.agents.create(name="Long", model="scripted", tools=[{"type": "agent_toolset_20260401"}])
        environment = client.beta.environments.create(name="Host")
        session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id)
        workspace = root / session.id

        def say(text: str) -> None:
            client.beta.sessions.events.send(
                session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": text}]}]
            )

        say("wait")
        with ProcessWorker(deployment.url, environment.id, root, tmp_path / "worker.log", max_idle="30s") as worker:
            wait_until("the tool runs", lambda: (workspace / "started").exists())
            (item,) = worker.item_pids()
            client.beta.sessions.events.send(session.id, events=[{"type": "user.interrupt"}])
            assert ended(client, session.id)
            began = time.monotonic()
            wait_until("the tool is gone", lambda: not sleepers(workspace), 10)
            print(f"the tool was gone {time.monotonic() - began:.2f} s after the interrupt was answered")
            say("write")
            wait_until("the next call runs", lambda: (workspace / "again").exists())
            wait_until("the next turn ends", lambda: ended(client, session.id))
            assert worker.item_pids() == [item], "the same activation goes on"
        events = events_of(client, session.id)
    check_history([{"processed_at": None, **event} for event in events])
    results = [event for event in events if event["type"] == "user.tool_result"]
    assert [bool(result["is_error"]) for result in results] == [True, False]
    assert not (workspace / "survived").exists()


def sleepers(workspace: Path) -> list[int]:
    """Processes that sleep below the workspace."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            folder = (entry / "cwd").readlink()
        except OSError:
            continue
        if command.startswith(b"sleep\x0061") and folder == workspace:
            found.append(int(entry.name))
    return found
