"""Who is asking: what a verified credential stands for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Credential(StrEnum):
    """The three kinds of credential (docs/architecture.md, section 6)."""

    WORKSPACE = "workspace"
    ENVIRONMENT = "environment"
    WORK = "work"


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of a verified credential.

    Attributes:
        key_id: id of the API key; the work id for a work token.
        environment_id: for environment keys and work tokens.
        session_id, work_id, generation, token_digest: for work tokens: the claim it was issued for. Whoever
            writes with it makes the transaction conditional on them.
    """

    kind: Credential
    workspace_id: str
    key_id: str
    environment_id: str | None = None
    session_id: str | None = None
    work_id: str | None = None
    generation: int = 0
    token_digest: str | None = None
