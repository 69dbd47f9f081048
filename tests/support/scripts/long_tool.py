"""A model script: a bash call that takes a minute, whenever the last user text asks for it; else it says `done`."""

from __future__ import annotations

from mango.model.answers import say, use
from mango.model.transcript import user_texts
from mango.ports import ModelAnswer, ModelRequest


def respond(request: ModelRequest) -> ModelAnswer:
    """`wait` starts the long call, `write` a short one; a result ends the turn."""
    last = request.messages[-1]["content"]
    text = user_texts(request)[-1][1]
    if last[-1]["type"] == "tool_result":
        return say("done")
    if text == "wait":
        return use(request, [("bash", {"command": "echo started > started; sleep 61; echo survived > survived"})])
    return use(request, [("bash", {"command": "echo again > again"})]) if text == "write" else say("done")
