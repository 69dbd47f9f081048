"""Calls models on Amazon Bedrock."""

from __future__ import annotations

from mango.model.messages import MessagesModel


class BedrockModel(MessagesModel):
    """Calls Bedrock in one region."""

    def __init__(self, region: str, *, time_limit: float = 780.0) -> None:
        super().__init__(region, time_limit=time_limit)
