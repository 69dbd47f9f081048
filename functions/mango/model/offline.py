"""The model that needs no network: it calls the first tool once, then echoes. Nothing in it is random."""

from __future__ import annotations

from collections.abc import Callable

from mango.model.answers import play, say, use
from mango.model.transcript import has_tool_result, last_user_text
from mango.ports import Cancellation, ModelAnswer, ModelRequest

THINK_SECONDS = 1.0
"""Programs that send first and open the stream after would miss the whole turn of a model that thinks no time."""


class OfflineModel:
    """Answers from the transcript alone, after `think_seconds`."""

    def __init__(self, think_seconds: float = THINK_SECONDS) -> None:
        self._think_seconds = think_seconds

    @property
    def name(self) -> str:
        return "offline (echoes; no model is configured)"

    def request(
        self,
        request: ModelRequest,
        cancellation: Cancellation,
        on_text: Callable[[int, str], None] | None = None,
    ) -> ModelAnswer:
        """See `ModelClient.request`; never fails."""
        return play(_answer(request), self._think_seconds, cancellation, on_text)


def _answer(request: ModelRequest) -> ModelAnswer:
    if request.tools and not has_tool_result(request):
        return use(request, [(request.tools[0]["name"], {})])
    return say(f"echo: {last_user_text(request)}")
