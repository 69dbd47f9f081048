"""Calls any endpoint that speaks the Messages protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from mango.model.streaming import IDLE_LIMIT, MAX_TOKENS, TIME_LIMIT, StreamingModel

if TYPE_CHECKING:
    import anthropic
    import httpx2

Auth = Literal["x-api-key", "authorization-bearer"]

PROTOCOL_VERSION = "2023-06-01"


class MessagesModel(StreamingModel):
    """Calls `{base_url}/v1/messages`; without a key, no credential is sent."""

    def __init__(
        self,
        base_url: str,
        api_key: str = "",
        auth: Auth = "x-api-key",
        *,
        time_limit: float = TIME_LIMIT,
        idle_limit: float = IDLE_LIMIT,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        password = urlsplit(base_url).password or ""
        super().__init__((api_key, password), time_limit, idle_limit, max_tokens)
        self._base_url = base_url
        self._api_key = api_key
        self._auth = auth

    @property
    def name(self) -> str:
        parts = urlsplit(self._base_url)
        host = parts.netloc.rpartition("@")[2]
        return f"messages at {parts.scheme}://{host}{parts.path.rstrip('/')}"

    def _client(self, http_client: httpx2.Client) -> anthropic.Anthropic:
        import anthropic

        # A given key, even an empty one, keeps the library from looking for credentials in the environment.
        return anthropic.Anthropic(
            api_key=self._api_key,
            base_url=self._base_url,
            timeout=http_client.timeout,
            max_retries=0,
            http_client=http_client,
        )

    def _headers(self) -> Mapping[str, str | anthropic.Omit]:
        import anthropic

        # The version that every endpoint knows; and the credential in full, for which the library has one header only.
        headers: dict[str, str | anthropic.Omit] = {
            "anthropic-version": PROTOCOL_VERSION,
            "X-Api-Key": anthropic.omit,
            "Authorization": anthropic.omit,
        }
        if self._api_key and self._auth == "x-api-key":
            headers["X-Api-Key"] = self._api_key
        elif self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        return headers
