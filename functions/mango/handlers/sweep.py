"""Lambda entry point of the sweeper: one pass, on a schedule."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from mango.handlers.measures import swept
from mango.handlers.observing import Observing, log
from mango.handlers.settings import DrivingSettings
from mango.handlers.wiring import driving_context, make_parts, started_by_lambda
from mango.services.context import Context
from mango.turn.sweep import SweepReport, sweep

Json = dict[str, Any]


class _Process(NamedTuple):
    ctx: Context
    observing: Observing


@cache
def _process() -> _Process:
    settings = DrivingSettings.read(os.environ)
    parts = make_parts("sweep", settings)
    return _Process(driving_context(settings, parts), parts.observing)


def handler(event: Mapping[str, Any], context: Any) -> Json:
    """Drives whatever is due by now; answers what it did, which is in the metrics too."""
    process = _process()
    with process.observing.invocation(context):
        report = sweep(process.ctx)
        counts = _counts(report)
        process.observing.add(swept(counts))
        log().info("swept", extra=counts)
        for failure in report.failed:
            log().error("could not be driven on: %s", failure)
        return {**counts}


def _counts(report: SweepReport) -> dict[str, Any]:
    names = ("started", "requeued", "stopped", "rung", "deleted", "lost")
    return {**{name: getattr(report, name) for name in names}, "failed": len(report.failed)}


if started_by_lambda():
    _process()
