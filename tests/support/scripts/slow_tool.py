"""A model script: one bash call that takes a while, then `done`."""

from __future__ import annotations

from mango.model.answers import say, use
from mango.model.transcript import calls
from mango.ports import ModelAnswer, ModelRequest


def respond(request: ModelRequest) -> ModelAnswer:
    """Calls once, and ends the turn when the result is there."""
    if any(call.result is not None for call in calls(request.messages)):
        return say("done")
    return use(request, [("bash", {"command": "echo ran >> runs; sleep 3; echo finished"})])
