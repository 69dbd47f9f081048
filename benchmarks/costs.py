"""`make costs`: what one tool round trip asks of AWS, counted, and what that costs at list prices.

The product runs in memory with meters on its ports: the API application answers the worker's request as Lambda would
be asked, and the rounds run as the state machine would call them. Only durations are assumed, and said to be.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, fields, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import prices
from benchmarks.metering import Counts, MeteredDoorbell, MeteredStore
from mango.api.app import Api, create_api
from mango.domain.keys import DUE_SHARDS
from mango.services import work
from mango.turn.round import run_round
from mango_local.asl import Choice, Machine, load
from mango_local.deploy import project, translation
from tests.support.world import WORKSPACE, World, result, text, tools

Json = dict[str, Any]

ROUND_TRIPS = 50
OUTPUT = "x" * 1000
"""What each tool answers; a command and its output are about that long."""
API_SECONDS, ROUND_SECONDS = 0.03, 0.06
"""Assumed: how long a warm function works, without waiting for a model."""
LOG_BYTES = 1500
"""Assumed: what the two functions of a round trip log."""
API_GB, ROUND_GB, SWEEP_GB, STREAM_GB = 1.0, 0.5, 0.5, 0.5
"""As template.yaml gives them; a test compares."""
SWEEP_SECONDS = 0.1
MINUTES = 60 * 24 * 365.25 / 12


@dataclass(frozen=True, slots=True)
class Cost:
    """A row: what it is, how much of it, in what unit, and dollars."""

    name: str
    amount: float
    dollars: float


class Metered:
    """One session of a worker that holds its work, with meters on."""

    def __init__(self) -> None:
        self.counts = Counts()
        world = World()
        world.ctx = replace(
            world.ctx,
            store=MeteredStore(world.store, self.counts),
            doorbell=MeteredDoorbell(self.counts),
        )
        world.turn = replace(world.turn, services=world.ctx)
        self._world = world
        self._api: Api = create_api(world.ctx)
        self._machine: Machine = load(project.machine())
        self._session = world.session("Do it.")
        self._token = self._work = ""

    def run(self, round_trips: int) -> Counts:
        """Counts of one round trip, as a mean over many; the first turn and the claim are not among them."""
        self._drive(tools(("bash", {"command": "step"})))
        self._claim()
        self._beat()
        self._trip(last=False)
        self._forget()
        for _ in range(round_trips):
            self._trip(last=False)
        counted = replace(self.counts)
        self._trip(last=True)
        return counted.over(round_trips)

    def _forget(self) -> None:
        for each in fields(self.counts):
            setattr(self.counts, each.name, 0)

    def _claim(self) -> None:
        item = self._world.claim()
        assert item is not None
        work.acknowledge(self._world.ctx, WORKSPACE, self._world.environment_id, item["id"])
        self._token = json.loads(base64.urlsafe_b64decode(item["secret"]))["sessions_token"]
        self._work = item["id"]

    def _beat(self) -> None:
        path = f"/v1/environments/{self._world.environment_id}/work/{self._work}/heartbeat"
        self._post(path, {}, {"expected_last_heartbeat": "NO_HEARTBEAT"})

    def _trip(self, *, last: bool) -> None:
        """The worker posts a result; the model asks for the next call, or ends the turn."""
        (call,) = self._world.open_calls(self._session)
        sent = {"events": [result(call, OUTPUT)]}
        self._post(f"/v1/sessions/{self._session}/events", sent, {})
        self._drive(text("Done.") if last else tools(("bash", {"command": "step"})))

    def _post(self, path: str, body: Json, query: dict[str, str]) -> None:
        self.counts.requests += 1
        self.counts.calls += 1
        event = {
            "httpMethod": "POST",
            "path": path,
            "headers": {"authorization": f"Bearer {self._token}", "content-type": "application/json"},
            "queryStringParameters": query or None,
            "body": json.dumps(body),
        }
        answer = self._api(event)
        assert answer["statusCode"] == 200, answer["body"]

    def _drive(self, reply: Any) -> None:
        self._world.model.replies.append(reply)
        for start in self._world.orchestrator.take():
            self._execute(start.session_id, start.thread_id, f"{start.thread_id}-{start.wake}")

    def _execute(self, session_id: str, thread_id: str, execution: str) -> None:
        """Walks the state machine as Step Functions does, counting the states it enters."""
        self.counts.executions += 1
        name = self._machine.start
        answer: Json = {}
        while True:
            self.counts.transitions += 1
            state = self._machine.states[name]
            if name == "Round":
                self.counts.calls += 1
                answer = run_round(self._world.turn, session_id, thread_id, execution)
            if isinstance(state, Choice):
                name = state.choose(answer)
            elif hasattr(state, "next"):
                name = state.next
            else:
                return


def per_thousand(counts: Counts) -> list[Cost]:
    """What a thousand round trips cost, without waiting for a model."""

    def row(name: str, amount: float, price: float) -> Cost:
        return Cost(name, amount, amount * price * 1000)

    seconds = API_SECONDS * API_GB + ROUND_SECONDS * ROUND_GB
    return [
        row("API Gateway requests", counts.requests, prices.GATEWAY_REQUEST),
        row("Lambda calls", counts.calls, prices.LAMBDA_CALL),
        row("Lambda GB-seconds, assumed", seconds, prices.LAMBDA_GB_SECOND),
        row("state transitions", counts.transitions, prices.TRANSITION),
        row("DynamoDB write units", counts.write_units, prices.WRITE_UNIT),
        row("DynamoDB read units", counts.read_units, prices.READ_UNIT),
        row("queue calls", counts.rings, prices.QUEUE_CALL),
        row("log GB, assumed", LOG_BYTES / 1e9, prices.LOG_GB),
    ]


def beside() -> list[Cost]:
    """What goes by time."""
    return [
        Cost("1,000 s of waiting for a model (GB-seconds)", 1000 * ROUND_GB, 1000 * ROUND_GB * prices.LAMBDA_GB_SECOND),
        Cost("1,000 s of an open stream (GB-seconds)", 1000 * STREAM_GB, 1000 * STREAM_GB * prices.LAMBDA_GB_SECOND),
        Cost("1,000 s of an active stream's reads (units)", 8000, 8000 * prices.READ_UNIT),
    ]


def idle_month(alarms: int) -> list[Cost]:
    """A month in which nothing happens."""
    reads = MINUTES * DUE_SHARDS * 0.5
    return [
        Cost("alarms", alarms, alarms * prices.ALARM_MONTH),
        Cost("KMS key", 1, prices.KEY_MONTH),
        Cost("sweeps", MINUTES, MINUTES * prices.LAMBDA_CALL),
        Cost("sweeps, GB-seconds, assumed", MINUTES * SWEEP_SECONDS * SWEEP_GB, _sweep_seconds()),
        Cost("sweeps, read units", reads, reads * prices.READ_UNIT),
    ]


def _sweep_seconds() -> float:
    return MINUTES * SWEEP_SECONDS * SWEEP_GB * prices.LAMBDA_GB_SECOND


def total(costs: list[Cost]) -> float:
    """Dollars."""
    return sum(each.dollars for each in costs)


def main() -> None:
    counts = Metered().run(ROUND_TRIPS)
    resources = translation.read_template()["Resources"].values()
    alarms = sum(each["Type"] == "AWS::CloudWatch::Alarm" for each in resources)
    console = Console()
    console.print(
        f"One tool round trip: {counts.commits:g} transactions, {counts.reads:g} reads; mean of {ROUND_TRIPS}."
    )
    console.print(_table("a tool round trip", "$ per 1,000", per_thousand(counts)))
    console.print(_table("by time", "$", beside()))
    console.print(_table("an idle month, without storage", "$", idle_month(alarms)))


def _table(title: str, dollars: str, costs: list[Cost]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("amount", justify="right")
    table.add_column(dollars, justify="right")
    for each in costs:
        table.add_row(each.name, f"{each.amount:,.6g}", f"{each.dollars:.4f}")
    table.add_row("total", "", f"{total(costs):.4f}")
    return table


if __name__ == "__main__":
    main()
