"""Calls any endpoint that speaks the Messages protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from mango.ports import Cancellation, ModelAnswer, ModelRequest


class MessagesModel:
    """Calls the endpoint at a base URL."""

    def __init__(
        self,
        base_url: str,
        api_key: str = "",
        auth: Literal["x-api-key", "authorization-bearer"] = "x-api-key",
        *,
        time_limit: float = 780.0,
    ) -> None:
        self._base_url = base_url

    @property
    def name(self) -> str:
        return "messages"

    def request(
        self,
        request: ModelRequest,
        cancellation: Cancellation,
        on_text: Callable[[int, str], None] | None = None,
    ) -> ModelAnswer:
        raise NotImplementedError
