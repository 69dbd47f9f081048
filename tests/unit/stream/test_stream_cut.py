from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from mango.api.app import create_api
from mango.api.asgi import create_asgi
from mango.domain.ledger import Event
from mango.stream import app as app_module
from mango_local.server import HttpServer
from tests.unit.stream.watching import NEVER, SESSION, Client, World

PATH = f"/v1/sessions/{SESSION}/events/stream"


def test_cut_at_any_byte_and_resumed_nothing_is_lost_or_doubled() -> None:
    async def scenario() -> None:
        world = World(NEVER)
        world.fill(50)
        resumed: dict[str, list[Event]] = {}
        async with Client(world.app(), last_event_id="0.0") as whole:
            await whole.shows(50)
        raw = whole.raw
        for offset in range(len(raw) + 1):
            whole.raw = raw[:offset]
            seen = whole.frames
            cursor = seen[-1].id if seen else "0.0"
            if cursor not in resumed:
                async with Client(world.app(), last_event_id=cursor) as rest:
                    await rest.shows(50 - len(seen))
                    resumed[cursor] = rest.events
            assert [*(frame.data for frame in seen), *resumed[cursor]] == world.log
        assert len(resumed) == 51

    asyncio.run(scenario())


@contextmanager
def served(world: World) -> Iterator[int]:
    """The port of a real server in a thread."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1000)
        ready = threading.Event()
        app = create_asgi(world.ctx, create_api(world.ctx), stream_app=world.app())
        server = HttpServer(app, access_log=False, on_ready=ready.set)
        thread = threading.Thread(target=server.serve_on, args=([listening],))
        thread.start()
        assert ready.wait(10)
        yield listening.getsockname()[1]
        world.hub.close()
        server.stop()
        thread.join(15)
        assert not thread.is_alive()


def queued(port: int, peer: int) -> list[int]:
    """Bytes that the kernel holds for a peer on a port of ours, for each of its sockets that is still known."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        int(row[4].partition(":")[0], 16)
        for row in rows
        if (row[1][-4:], row[2][-4:]) == (f"{port:04X}", f"{peer:04X}")
    ]


def silent(port: int, cursor: str = "") -> socket.socket:
    """A client that opens a stream and reads no more than the beginning."""
    stuck = socket.socket()
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stuck.connect(("127.0.0.1", port))
    resume = f"last-event-id: {cursor}\r\n" if cursor else ""
    stuck.sendall(f"GET {PATH} HTTP/1.1\r\nhost: x\r\nauthorization: workspace\r\n{resume}\r\n".encode())
    assert stuck.recv(12) == b"HTTP/1.1 200"
    return stuck


def check_dropped(world: World, port: int, stuck: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is left of a connection, and one line tells of it."""
    peer = stuck.getsockname()[1]
    deadline = time.monotonic() + 10
    while world.hub.subscribers or (sys.platform == "linux" and queued(port, peer)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(ConnectionResetError):
        while stuck.recv(65536):
            pass
    records = [each for each in caplog.records if each.name.startswith("mango") or each.levelno >= logging.WARNING]
    assert [(each.levelno, each.getMessage()) for each in records] == [
        (logging.INFO, "dropped the connection of a client that does not read")
    ]


def test_a_socket_that_is_not_read_is_dropped_while_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world = World(NEVER)
    text = "x" * 4000
    with served(world) as port, silent(port) as stuck:
        url = f"http://127.0.0.1:{port}{PATH}"
        with httpx.stream("GET", url, headers={"authorization": "workspace"}, timeout=20) as quick:
            lines = quick.iter_lines()
            for _ in range(3000):
                world.append("agent.message", texts=[text])
                for line in lines:
                    if line.startswith("data: "):
                        break
            assert quick.headers["content-type"] == "text/event-stream"
        check_dropped(world, port, stuck, caplog)


def test_one_that_stops_reading_a_long_history_is_dropped_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing new comes up for it, so no queue overflows."""
    monkeypatch.setattr(app_module, "STALLED_SECONDS", 0.5)
    monkeypatch.setattr(app_module, "LAST_WORDS_SECONDS", 0.1)
    caplog.set_level("INFO")
    world = World(NEVER)
    for _ in range(3000):
        world.append("agent.message", texts=["x" * 4000])
    with served(world) as port, silent(port, "0.0") as stuck:
        check_dropped(world, port, stuck, caplog)


def test_a_thousand_connections_come_and_go() -> None:
    world = World(NEVER)
    with served(world) as port:
        for _ in range(10):
            opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
            for each in opened:
                each.sendall(f"GET {PATH} HTTP/1.1\r\nhost: x\r\nauthorization: workspace\r\n\r\n".encode())
            for each in opened:
                assert each.recv(12) == b"HTTP/1.1 200"
                each.close()
        deadline = time.monotonic() + 10
        while world.hub.subscribers or world.hub.feeds:
            assert time.monotonic() < deadline
            time.sleep(0.01)
