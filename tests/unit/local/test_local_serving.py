"""HTTP and streams as `mango up` puts them together, on the twin."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from mango.domain.transaction import Ambiguous
from mango.memory import Fault, ManualClock
from mango.services import keys
from mango.stream import app as app_module
from mango_local.halves import Serving
from mango_local.profile import Profile
from tests.unit.stream.watching import NEVER, SESSION, World

OWN = "sk-mango-of-my-own"
PATH = f"/v1/sessions/{SESSION}/events/stream"


@contextmanager
def serving(world: World) -> Iterator[httpx.Client]:
    """A client of it, with a key of the session's workspace."""
    keys.ensure_key(world.ctx, OWN, "wrkspc_1")
    ready = threading.Event()
    profile = cast(Profile, SimpleNamespace(store=world.store))
    served = Serving(world.ctx, profile, pace=NEVER, access_log=False, on_ready=ready.set)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=served.run, args=([listening],))
        thread.start()
        assert ready.wait(10)
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=base, headers={"x-api-key": OWN}, timeout=5) as client:
            yield client
        served.stop()
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("fate", [Fault.NONE, Fault.ANSWER_LOST])
def test_streams_hear_of_every_commit_of_the_process(fate: Fault) -> None:
    world = World(told=False)
    with serving(world) as client, client.stream("GET", PATH) as response:
        lines = response.iter_lines()
        assert next(lines) == ": open"
        time.sleep(0.1)  # the first look is over, and there is no second within a minute
        with pytest.raises(Ambiguous) if fate is not Fault.NONE else contextlib.nullcontext():
            world.append("agent.message", fate=fate)
        began = time.monotonic()
        assert next(line for line in lines if line.startswith("event: ")) == "event: agent.message"
        assert time.monotonic() - began < 2


def test_a_stream_ends_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in app_module.REVALIDATE_SECONDS:
        monkeypatch.setitem(app_module.REVALIDATE_SECONDS, kind, 0.1)
    world = World(told=False)
    with serving(world) as client, client.stream("GET", PATH) as response:
        lines = response.iter_lines()
        assert next(lines) == ": open"
        shown: dict[str, Any] = keys.list_keys(world.ctx, "wrkspc_1")[0]
        keys.revoke(world.ctx, "wrkspc_1", shown["id"])
        assert isinstance(world.ctx.clock, ManualClock)
        world.ctx.clock.advance(keys.REMEMBER)
        assert [line for line in lines if line.startswith("event: ")] == []  # ends properly, or this raises
        assert client.get("/v1/agents").status_code == 401
