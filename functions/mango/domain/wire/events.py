"""Events that clients send, and the query of the event list."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from mango.domain.wire.base import Many, ResourceId, Text, WireModel, below, by_type, unsupported
from mango.domain.wire.content import MAX_BLOCKS, MessageContent, ResultContent, TextBlock, check_blocks
from mango.domain.wire.errors import fault
from mango.domain.wire.query import Moment, QueryModel, WholeNumber

MAX_EVENTS = 100
"""Events of one request (architecture, section 4)."""
MAX_RUBRIC = 262_144
MAX_TEXT = 100_000
"""Characters of a deny message or an outcome's description."""


class UserMessage(WireModel):
    type: Literal["user.message"]
    content: MessageContent

    def check_supported(self, at: str) -> None:
        check_blocks(self.content, below(at, "content"))


class UserInterrupt(WireModel):
    type: Literal["user.interrupt"]
    session_thread_id: ResourceId | None = None


class UserToolConfirmation(WireModel):
    type: Literal["user.tool_confirmation"]
    tool_use_id: ResourceId
    result: Literal["allow", "deny"]
    deny_message: Annotated[Text, Field(max_length=MAX_TEXT)] | None = None

    @model_validator(mode="after")
    def _message_needs_denial(self) -> UserToolConfirmation:
        if self.deny_message is not None and self.result == "allow":
            raise fault("goes with `result` 'deny' only", "deny_message")
        return self


class UserCustomToolResult(WireModel):
    type: Literal["user.custom_tool_result"]
    custom_tool_use_id: ResourceId
    content: ResultContent = Field(default_factory=list)
    is_error: bool | None = None

    def check_supported(self, at: str) -> None:
        check_blocks(self.content, below(at, "content"))


class UserToolResult(WireModel):
    type: Literal["user.tool_result"]
    tool_use_id: ResourceId
    content: ResultContent = Field(default_factory=list)
    is_error: bool | None = None

    def check_supported(self, at: str) -> None:
        check_blocks(self.content, below(at, "content"))


class TextRubric(WireModel):
    type: Literal["text"]
    content: Annotated[Text, Field(min_length=1, max_length=MAX_RUBRIC)]


class FileRubric(WireModel):
    type: Literal["file"]
    file_id: ResourceId


Rubric = Annotated[
    Annotated[TextRubric, Tag("<text>")] | Annotated[FileRubric, Tag("<file>")],
    by_type("text", "file"),
]


class UserDefineOutcome(WireModel):
    type: Literal["user.define_outcome"]
    description: Annotated[Text, Field(min_length=1, max_length=MAX_TEXT)]
    rubric: Rubric
    max_iterations: Annotated[int, Field(ge=1, le=20)] | None = None

    def check_supported(self, at: str) -> None:
        raise unsupported(at, "an event of type 'user.define_outcome'")


class SystemMessage(WireModel):
    type: Literal["system.message"]
    content: Annotated[Many[TextBlock], Field(min_length=1, max_length=MAX_BLOCKS)]

    def check_supported(self, at: str) -> None:
        raise unsupported(at, "an event of type 'system.message'")


InputEvent = Annotated[
    Annotated[UserMessage, Tag("<user.message>")]
    | Annotated[UserInterrupt, Tag("<user.interrupt>")]
    | Annotated[UserToolConfirmation, Tag("<user.tool_confirmation>")]
    | Annotated[UserCustomToolResult, Tag("<user.custom_tool_result>")]
    | Annotated[UserToolResult, Tag("<user.tool_result>")]
    | Annotated[UserDefineOutcome, Tag("<user.define_outcome>")]
    | Annotated[SystemMessage, Tag("<system.message>")],
    by_type(
        "user.message",
        "user.interrupt",
        "user.tool_confirmation",
        "user.custom_tool_result",
        "user.tool_result",
        "user.define_outcome",
        "system.message",
    ),
]
InitialEvent = Annotated[
    Annotated[UserMessage, Tag("<user.message>")] | Annotated[UserDefineOutcome, Tag("<user.define_outcome>")],
    by_type("user.message", "user.define_outcome"),
]


class EventSend(WireModel):
    """Body of sending events: all are accepted or none."""

    events: Annotated[Many[InputEvent], Field(min_length=1, max_length=MAX_EVENTS)]

    def check_supported(self, at: str) -> None:
        for n, event in enumerate(self.events):
            event.check_supported(below(at, "events", n))


EventType = Literal[
    "user.message",
    "user.interrupt",
    "user.tool_confirmation",
    "user.custom_tool_result",
    "user.tool_result",
    "user.define_outcome",
    "system.message",
    "agent.message",
    "agent.thinking",
    "agent.tool_use",
    "agent.tool_result",
    "agent.mcp_tool_use",
    "agent.mcp_tool_result",
    "agent.custom_tool_use",
    "agent.thread_context_compacted",
    "agent.thread_message_received",
    "agent.thread_message_sent",
    "session.status_running",
    "session.status_idle",
    "session.status_rescheduled",
    "session.status_terminated",
    "session.updated",
    "session.error",
    "session.usage",
    "session.thread_created",
    "session.thread_status_running",
    "session.thread_status_idle",
    "session.thread_status_rescheduled",
    "session.thread_status_terminated",
    "span.model_request_start",
    "span.model_request_end",
    "span.outcome_evaluation_start",
    "span.outcome_evaluation_ongoing",
    "span.outcome_evaluation_end",
    "workflow_run.created",
    "workflow_run.status_running",
    "workflow_run.status_idle",
    "workflow_run.status_ended",
    "workflow_run.error",
    "workflow_run.phase_started",
    "workflow_run.phase_ended",
]
"""The 41 types that history can be filtered by."""


class EventListQuery(QueryModel):
    """`created_at` bounds are on the time an event entered history."""

    limit: Annotated[WholeNumber, Field(ge=1, le=1000)] = 100
    order: Literal["asc", "desc"] = "asc"
    page: str | None = None
    types: Many[EventType] | None = None
    created_at_gt: Moment | None = Field(default=None, alias="created_at[gt]")
    created_at_gte: Moment | None = Field(default=None, alias="created_at[gte]")
    created_at_lt: Moment | None = Field(default=None, alias="created_at[lt]")
    created_at_lte: Moment | None = Field(default=None, alias="created_at[lte]")
