"""What a committed transaction means in numbers. Counted from what was written, so nothing inside has to count.

A commit whose answer was lost is not told to listeners, and a list of events over 300 KB is in a blob: these few are
not counted. The numbers are for graphs and alarms, not for bills.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mango.domain import keys
from mango.domain.ledger import Event
from mango.domain.times import SECOND
from mango.domain.transaction import Item, Put, Transaction
from mango.system import moment_of

COUNT, SECONDS = "Count", "Seconds"
RESULTS = {
    "user.tool_result": "tool_use_id",
    "agent.tool_result": "tool_use_id",
    "user.custom_tool_result": "custom_tool_use_id",
}
SPANS = 1000
"""Model requests under way whose start is remembered."""


class Measure(NamedTuple):
    """A number, with its name and unit as CloudWatch spells it."""

    name: str
    unit: str
    value: float


class Measures:
    """Turns commits into numbers; remembers when the model requests of this process began."""

    def __init__(self) -> None:
        self._began: OrderedDict[str, int] = OrderedDict()

    def of(self, transaction: Transaction) -> Iterator[Measure]:
        """What this commit did."""
        for write in transaction.writes:
            if isinstance(write, Put) and write.key.sk.startswith(keys.LEDGER_MARK):
                yield from self._commit(write.item)

    def _commit(self, item: Mapping[str, object]) -> Iterator[Measure]:
        text, at = item["events"], item["at"]
        assert isinstance(at, int)
        if isinstance(text, str):
            for event in json.loads(text):
                yield from self._event(event, at)

    def _event(self, event: Event, at: int) -> Iterator[Measure]:
        kind = event["type"]
        if kind == "span.model_request_start":
            self._remember(event["id"], at)
        elif kind == "span.model_request_end":
            yield from self._round(event, at)
        elif kind == "session.status_idle":
            waits = event["stop_reason"]["type"] == "requires_action"
            yield Measure("BarrierWaits" if waits else "Turns", COUNT, 1)
        elif kind == "session.status_terminated":
            yield Measure("Turns", COUNT, 1)
        elif kind == "session.error":
            yield Measure("Retries" if _retries(event) else "SessionErrors", COUNT, 1)
        elif kind in RESULTS:
            yield from _answered(event[RESULTS[kind]], at)

    def _remember(self, span: str, at: int) -> None:
        self._began[span] = at
        while len(self._began) > SPANS:
            self._began.popitem(last=False)

    def _round(self, event: Event, at: int) -> Iterator[Measure]:
        usage = event["model_usage"]
        yield Measure("Rounds", COUNT, 1)
        yield Measure("InputTokens", COUNT, usage["input_tokens"])
        yield Measure("OutputTokens", COUNT, usage["output_tokens"])
        yield Measure("CacheReadTokens", COUNT, usage["cache_read_input_tokens"])
        yield Measure("CacheCreationTokens", COUNT, usage["cache_creation_input_tokens"])
        began = self._began.pop(event["model_request_start_id"], None)
        if began is not None:
            yield Measure("ModelSeconds", SECONDS, (at - began) / SECOND)


def _retries(event: Event) -> bool:
    return bool(event["error"]["retry_status"]["type"] == "retrying")


def _answered(call_id: str, at: int) -> Iterator[Measure]:
    """A tool call came back. Its id tells when the model asked for it."""
    yield Measure("ToolRoundTrips", COUNT, 1)
    asked = moment_of(call_id)
    if asked is not None:
        yield Measure("ToolWaitSeconds", SECONDS, max(at - asked, 0) / SECOND)


def swept(counts: Item) -> Iterator[Measure]:
    """The counts of a sweep's report."""
    for name, value in counts.items():
        assert isinstance(value, int)
        yield Measure(f"Swept{name.capitalize()}", COUNT, value)
