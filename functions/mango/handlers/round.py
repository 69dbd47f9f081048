"""Lambda entry point of a round: one model request, and what it causes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from mango.handlers.execution import Execution, Json
from mango.handlers.model import choose_model
from mango.handlers.observing import Observing, log
from mango.handlers.settings import RoundSettings
from mango.handlers.wiring import driving_context, make_parts, model_secret, started_by_lambda
from mango.turn.context import TurnContext
from mango.turn.round import run_round


class _Process(NamedTuple):
    turn: TurnContext
    observing: Observing


@cache
def _process() -> _Process:
    settings = RoundSettings.read(os.environ)
    parts = make_parts("round", settings)
    model = choose_model(os.environ, model_secret(settings, parts))
    turn = TurnContext(driving_context(settings, parts), model)
    parts.store.on_commit.append(turn.transcripts.observe)
    return _Process(turn, parts.observing)


def handler(event: Mapping[str, Any], context: Any) -> Json:
    """Does the round. What it raises keeps its class, by which the state machine retries or catches."""
    process, execution = _process(), Execution.read(event)
    with process.observing.invocation(context, **execution.ids):
        answer = run_round(process.turn, **execution.ids)
        log().info("round done", extra=answer)
        return execution.answered(answer)


if started_by_lambda():
    _process()
