"""Calls models on Amazon Bedrock, with the credentials that the AWS SDK finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mango.model.errors import transport_error
from mango.model.streaming import IDLE_LIMIT, MAX_TOKENS, TIME_LIMIT, StreamingModel
from mango.ports import ModelRequest

if TYPE_CHECKING:
    import anthropic
    import httpx2


class BedrockModel(StreamingModel):
    """Calls Bedrock in one region. The agent's model id must be one of Bedrock's, or an inference profile's."""

    def __init__(
        self,
        region: str,
        *,
        base_url: str | None = None,
        time_limit: float = TIME_LIMIT,
        idle_limit: float = IDLE_LIMIT,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        """`base_url` is for endpoints other than the region's public one: a VPC endpoint, or a test's."""
        super().__init__((), time_limit, idle_limit, max_tokens)
        self._region = region
        self._base_url = base_url

    @property
    def name(self) -> str:
        return f"Amazon Bedrock in {self._region}"

    def _client(self, http_client: httpx2.Client) -> anthropic.AnthropicBedrock:
        import anthropic

        return anthropic.AnthropicBedrock(
            aws_region=self._region,
            base_url=self._base_url,
            timeout=http_client.timeout,
            max_retries=0,
            http_client=http_client,
        )

    def _post(self, http_client: httpx2.Client, request: ModelRequest) -> Iterator[Any]:
        from botocore.eventstream import ParserError
        from botocore.exceptions import BotoCoreError

        try:
            yield from super()._post(http_client, request)
        except ParserError as error:
            raise transport_error("Bedrock sent a malformed stream", error) from None
        except (BotoCoreError, RuntimeError) as error:
            # No credentials, or none just now. It says nothing about the request, so the session is to survive it.
            raise transport_error("AWS credentials for Bedrock could not be obtained", error) from None
