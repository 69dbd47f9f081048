"""What a round is given."""

from __future__ import annotations

from dataclasses import dataclass, field

from mango.ports import ModelClient
from mango.services.context import Context
from mango.turn.transcript import TranscriptCache


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The services' context, the model, and what this process remembers of transcripts."""

    services: Context
    model: ModelClient
    transcripts: TranscriptCache = field(default_factory=TranscriptCache)
