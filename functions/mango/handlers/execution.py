"""What a state machine's task is given, and gives back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Json = dict[str, Any]


class Execution(BaseModel):
    """The ids that each state passes on. What else the data holds (answers of earlier tasks, errors) is dropped."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    session_id: str = Field(min_length=1)
    thread_id: str = Field(min_length=1)
    execution: str = Field(min_length=1)

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> Execution:
        """Raises `pydantic.ValidationError`, which no Retry covers: the same data would fail again."""
        return cls.model_validate(dict(event))

    @property
    def ids(self) -> dict[str, str]:
        return {"session_id": self.session_id, "thread_id": self.thread_id, "execution": self.execution}

    def answered(self, answer: Json) -> Json:
        """The task's output, which replaces its input."""
        return {**self.ids, **answer}
