"""A tool round trip asks no more of AWS than it should."""

from __future__ import annotations

from typing import Any

from benchmarks import costs

Json = dict[str, Any]


def test_a_tool_round_trip_is_cheap() -> None:
    counts = costs.Metered().run(costs.ROUND_TRIPS)
    assert counts.transitions <= 3
    assert counts.calls <= 2
    assert counts.rings <= 1
    assert counts.commits == 3
    assert costs.total(costs.per_thousand(counts)) <= 0.12


def test_the_memory_that_is_priced_is_the_templates(resources: Json) -> None:
    names = ("ApiFunction", "RoundFunction", "SweepFunction", "StreamFunction")
    given = [resources[name]["Properties"]["MemorySize"] for name in names]
    priced = (costs.API_GB, costs.ROUND_GB, costs.SWEEP_GB, costs.STREAM_GB)
    assert given == [round(each * 1024) for each in priced]
