"""Asks for several bash calls in one answer, as many as the user's text says (`run 5`; three when none does)."""

from __future__ import annotations

from mango.model.answers import say, use
from mango.model.scripts.ten_tools import wanted
from mango.model.transcript import calls, offers
from mango.ports import ModelAnswer, ModelRequest

DEFAULT_COUNT = 3


def respond(request: ModelRequest) -> ModelAnswer:
    """All calls at once, then `done: <the results, one a line>`."""
    if not offers(request, "bash"):
        return say("bash is not offered to me")
    count, start = wanted(request, DEFAULT_COUNT)
    made = calls(request.messages[start:])
    if not made and count:
        return use(request, [("bash", {"command": f"echo step {step}"}) for step in range(1, count + 1)])
    return say("done: " + "\n".join(call.result or "" for call in made))
