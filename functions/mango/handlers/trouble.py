"""Lambda entry point of what an execution does when its rounds fail for reasons of infrastructure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from mango.handlers.execution import Execution, Json
from mango.handlers.observing import Observing, log
from mango.handlers.settings import Settings
from mango.handlers.wiring import make_parts, reading_context, started_by_lambda
from mango.services.context import Context
from mango.turn.trouble import run_trouble


class _Process(NamedTuple):
    ctx: Context
    observing: Observing


@cache
def _process() -> _Process:
    settings = Settings.read(os.environ)
    parts = make_parts("trouble", settings)
    return _Process(reading_context(settings, parts.clients, parts.store), parts.observing)


def handler(event: Mapping[str, Any], context: Any) -> Json:
    """Frees the lease and plans the next try; answers the ids alone."""
    process, execution = _process(), Execution.read(event)
    with process.observing.invocation(context, **execution.ids):
        log().error("a round failed for good", extra={"failure": event.get("error")})
        run_trouble(process.ctx, **execution.ids)
        return execution.ids


if started_by_lambda():
    _process()
