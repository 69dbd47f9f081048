"""`make bench`: how long a tool round trip takes, next to the floor of the same run; creates and stream latency.

Everything runs on this machine against a `mango up` of its own, with a model that answers at once.
"""

from __future__ import annotations

import http.client
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from benchmarks.floor import Floor, store_of
from tests.support.deployment import KEY, Deployment

MODEL = Path(__file__).parent / "instant_model.py"
ROUND_TRIPS = 500
TURNS = 5
WARM_UP = 30
"""Round trips that are not counted: imports, connections and caches come first."""
CREATES = 200
MESSAGES = 60

Json = dict[str, Any]


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


class Session:
    """One session of the benchmark, with a connection of its own to post on.

    The connection is the standard library's, so that little of what is measured is the client's own work.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        tools = [{"type": "agent_toolset_20260401"}]
        agent = self._post("/v1/agents", {"name": "B", "model": "m", "tools": tools})
        environment = self._post("/v1/environments", {"name": "B"})
        self._body: Json = {"agent": agent["id"], "environment_id": environment["id"]}
        self.id: str = self._post("/v1/sessions", self._body)["id"]

    def _post(self, path: str, body: Json) -> Json:
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        self._connection.request("POST", path, json.dumps(body), headers)
        response = self._connection.getresponse()
        answer: Json = json.loads(response.read())
        assert response.status == 200, answer
        return answer

    def _send(self, event: Json) -> None:
        self._post(f"/v1/sessions/{self.id}/events", {"events": [event]})

    def say(self, text: str) -> None:
        self._send({"type": "user.message", "content": [{"type": "text", "text": text}]})

    def answer(self, call: str) -> None:
        content = [{"type": "text", "text": "step done"}]
        self._send({"type": "user.tool_result", "tool_use_id": call, "content": content})

    def create_another(self) -> None:
        self._post("/v1/sessions", self._body)


@contextmanager
def stream(url: str, session_id: str) -> Iterator[Iterator[Json]]:
    """The events of an open stream, as they arrive."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.request("GET", f"/v1/sessions/{session_id}/events/stream", headers={"authorization": f"Bearer {KEY}"})
    response = connection.getresponse()
    assert response.status == 200
    try:
        yield (json.loads(line[5:]) for line in response if line.startswith(b"data:"))
    finally:
        connection.close()


def round_trips(url: str, count: int) -> list[float]:
    """Seconds from posting a result to seeing the session wait for the next one."""
    session = Session(url)
    taken: list[float] = []
    with stream(url, session.id) as events:
        session.say("go")
        began = 0.0
        for event in events:
            if event["type"] != "session.status_idle":
                continue
            if began:
                taken.append(time.perf_counter() - began)
            if len(taken) == count:
                return taken
            began = time.perf_counter()
            session.answer(event["stop_reason"]["event_ids"][0])
    raise AssertionError("the stream ended early")


def message_to_stream(url: str, count: int) -> list[float]:
    """Seconds from sending a message to seeing it on an open stream."""
    session = Session(url)
    sent: list[float] = []
    taken: list[float] = []
    idle = threading.Event()
    idle.set()

    def speak() -> None:
        for _ in range(count):
            idle.wait(10)
            idle.clear()
            sent.append(time.perf_counter())
            session.say("hello")

    with stream(url, session.id) as events:
        speaker = threading.Thread(target=speak)
        speaker.start()
        for event in events:
            if event["type"] == "user.message":
                taken.append(time.perf_counter() - sent[-1])
            elif event["type"] == "session.status_idle":
                idle.set()
                if len(taken) == count:
                    break
        speaker.join()
    return taken


def creates_per_second(url: str) -> float:
    session = Session(url)
    began = time.perf_counter()
    for _ in range(CREATES):
        session.create_another()
    return CREATES / (time.perf_counter() - began)


def report(trips: list[float], floor: list[float], creates: float, latency: list[float]) -> None:
    table = Table("measure", "p50", "p99", "aim", title="Embedded profile, one session, zero-latency model")

    def row(name: str, values: list[float], aim: str = "") -> None:
        table.add_row(
            name, f"{statistics.median(values) * 1e3:.2f} ms", f"{percentile(values, 0.99) * 1e3:.2f} ms", aim
        )

    row("tool round trip", trips)
    row("floor: its three transactions alone", floor)
    ratio = statistics.median(trips) / statistics.median(floor)
    table.add_row("ratio", f"{ratio:.2f}", f"{percentile(trips, 0.99) / percentile(floor, 0.99):.2f}", "≤ 2.5 (p50)")
    row("message to open stream", latency, "≤ 20 ms (p50)")
    table.add_row("session creates per second", f"{creates:.0f}", "", "")
    Console().print(table)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        with Deployment(data_dir, f"scripted:{MODEL}") as running:
            floor = Floor(store_of(data_dir), "sesn_floor")
            trips: list[float] = []
            floors: list[float] = []
            # In turns, so that whatever else the machine does meets both alike.
            for _ in range(TURNS):
                floors += [floor.round_trip() for _ in range(WARM_UP + ROUND_TRIPS // TURNS)][WARM_UP:]
                trips += round_trips(running.url, WARM_UP + ROUND_TRIPS // TURNS)[WARM_UP:]
            latency = message_to_stream(running.url, MESSAGES)
            report(trips, floors, creates_per_second(running.url), latency)


if __name__ == "__main__":
    main()
