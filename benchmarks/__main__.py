"""`make bench`: how long a tool round trip takes, next to the floor of the same run; creates and stream latency.

Everything runs on this machine against a `mango up` of its own, with a model that answers at once.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks.floor import Floor, store_of
from tests.support.deployment import Deployment

ROUND_TRIPS = 300
WARM_UP = 30
"""Round trips that are not counted: imports, connections and caches come first."""
CREATES = 200
MESSAGES = 60

Json = dict[str, Any]


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


class Session:
    """One session of the benchmark: its open stream, and a poster on a connection of its own."""

    def __init__(self, http: httpx.Client, text: str | None) -> None:
        self._http = http
        agent = http.post(
            "/v1/agents", json={"name": "B", "model": "m", "tools": [{"type": "agent_toolset_20260401"}]}
        ).json()
        environment = http.post("/v1/environments", json={"name": "B"}).json()
        self._body: Json = {"agent": agent["id"], "environment_id": environment["id"]}
        self.id: str = http.post("/v1/sessions", json=self._body).json()["id"]
        self._text = text

    def send(self, event: Json) -> None:
        answer = self._http.post(f"/v1/sessions/{self.id}/events", json={"events": [event]})
        answer.raise_for_status()

    def say(self, text: str) -> None:
        self.send({"type": "user.message", "content": [{"type": "text", "text": text}]})

    def answer(self, call: str) -> None:
        content = [{"type": "text", "text": "step done"}]
        self.send({"type": "user.tool_result", "tool_use_id": call, "content": content})

    def create_another(self) -> None:
        self._http.post("/v1/sessions", json=self._body).raise_for_status()


def frames(response: httpx.Response) -> Iterator[Json]:
    for line in response.iter_lines():
        if line.startswith("data:"):
            yield json.loads(line[5:])


def round_trips(http: httpx.Client, stream_http: httpx.Client, count: int) -> list[float]:
    """Seconds from posting a result to seeing the session wait for the next one."""
    session = Session(http, None)
    taken: list[float] = []
    with stream_http.stream("GET", f"/v1/sessions/{session.id}/events/stream") as response:
        events = frames(response)
        session.say(f"run {count}")
        began = 0.0
        for event in events:
            if event["type"] != "session.status_idle":
                continue
            now = time.perf_counter()
            if began:
                taken.append(now - began)
            if event["stop_reason"]["type"] != "requires_action":
                return taken
            began = time.perf_counter()
            session.answer(event["stop_reason"]["event_ids"][0])
    raise AssertionError("the stream ended early")


def message_to_stream(http: httpx.Client, stream_http: httpx.Client, count: int) -> list[float]:
    """Seconds from sending a message to seeing it on an open stream."""
    session = Session(http, None)
    sent: list[float] = []
    taken: list[float] = []
    idle = threading.Event()
    idle.set()

    def speak() -> None:
        for _ in range(count):
            idle.wait(10)
            idle.clear()
            sent.append(time.perf_counter())
            session.say("run 0")

    with stream_http.stream("GET", f"/v1/sessions/{session.id}/events/stream") as response:
        speaker = threading.Thread(target=speak)
        speaker.start()
        for event in frames(response):
            if event["type"] == "user.message":
                taken.append(time.perf_counter() - sent[-1])
            elif event["type"] == "session.status_idle":
                idle.set()
                if len(taken) == count:
                    break
        speaker.join()
    return taken


def creates_per_second(http: httpx.Client) -> float:
    session = Session(http, None)
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
        with Deployment(data_dir, "scripted:ten-tools") as running, running.http() as http, running.http() as streams:
            floor = Floor(store_of(data_dir), "sesn_floor")
            for _ in range(WARM_UP):
                floor.round_trip()
            trips: list[float] = []
            floors: list[float] = []
            # In turns, so that whatever else the machine does meets both alike.
            for _ in range(3):
                floors += [floor.round_trip() for _ in range(ROUND_TRIPS // 3)]
                trips += round_trips(http, streams, WARM_UP + ROUND_TRIPS // 3)[WARM_UP:]
            latency = message_to_stream(http, streams, MESSAGES)
            report(trips, floors, creates_per_second(http), latency)


if __name__ == "__main__":
    main()
