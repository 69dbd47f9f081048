"""Inputs of the agent routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, Tag

from mango.domain.wire.base import (
    Json,
    Many,
    Metadata,
    Name,
    ResourceId,
    Text,
    WireModel,
    below,
    by_type,
    refuse_nul,
    unsupported,
)
from mango.domain.wire.errors import fault
from mango.domain.wire.query import Flag, Moment, QueryModel, WholeNumber
from mango.domain.wire.tools import Tools, check_tools

MAX_SYSTEM = 100_000
MAX_DESCRIPTION = 2_048
MAX_SERVERS = 20
MAX_SKILLS = 500

Level = Literal["low", "medium", "high", "xhigh", "max"]
ModelId = Annotated[Text, Field(min_length=1, max_length=256)]


class Effort(WireModel):
    type: Level


EffortChoice = Annotated[
    Annotated[Level, Tag("<string>")]
    | Annotated[Effort, Tag("<low>")]
    | Annotated[Effort, Tag("<medium>")]
    | Annotated[Effort, Tag("<high>")]
    | Annotated[Effort, Tag("<xhigh>")]
    | Annotated[Effort, Tag("<max>")],
    by_type("low", "medium", "high", "xhigh", "max", text=True),
]


class ModelConfig(WireModel):
    """Any model id is taken (decision 23)."""

    id: ModelId
    effort: EffortChoice | None = None
    inference_geo: Text | None = None
    speed: Literal["standard", "fast"] | None = None

    def check_supported(self, at: str) -> None:
        if self.inference_geo is not None:
            raise unsupported(below(at, "inference_geo"), "choosing where inference runs")

    def resolved(self) -> Json:
        """The form of responses."""
        effort = self.effort.type if isinstance(self.effort, Effort) else self.effort
        return {
            "id": self.id,
            "effort": None if effort is None else {"type": effort},
            "inference_geo": None,
            "speed": self.speed or "standard",
        }


def _tag(value: Any) -> str | None:
    if isinstance(value, str):
        return "<string>"
    return "<object>" if isinstance(value, dict | ModelConfig) else None


ModelChoice = Annotated[
    Annotated[ModelId, Tag("<string>")] | Annotated[ModelConfig, Tag("<object>")],
    by_type(tag=_tag, wanted="must be a model id or an object with `id`"),
]


def resolve_model(model: str | ModelConfig) -> Json:
    """The object that responses, snapshots and model requests carry."""
    return (ModelConfig(id=model) if isinstance(model, str) else model).resolved()


def check_model(model: str | ModelConfig | None, at: str) -> None:
    if isinstance(model, ModelConfig):
        model.check_supported(at)


def _server_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        host = None
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.username is not None or parts.fragment:
        raise fault("must be an absolute http or https URL without user name and fragment")
    return text


class McpServer(WireModel):
    type: Literal["url"]
    name: Annotated[Text, Field(min_length=1, max_length=255)]
    url: Annotated[Text, Field(max_length=2048), AfterValidator(_server_url)]


class Skill(WireModel):
    type: Literal["anthropic", "custom"]
    skill_id: ResourceId
    version: Text | None = None


class ExecutionIdentity(WireModel):
    type: Literal["service_account", "aws_role"]
    role_arn: Annotated[Text, Field(min_length=1, max_length=2048)] | None = None

    def check_supported(self, at: str) -> None:
        if self.type == "aws_role":
            raise unsupported(at, "an execution identity of type 'aws_role'")


def _multiagent(value: Json) -> Json:
    if value.get("type") not in ("coordinator", "multiagent_20261001"):
        raise fault("must be 'coordinator' or 'multiagent_20261001'", "type")
    refuse_nul(value)
    return value


Multiagent = Annotated[dict[str, Any], AfterValidator(_multiagent)]
McpServers = Annotated[Many[McpServer], Field(max_length=MAX_SERVERS)]
Skills = Annotated[Many[Skill], Field(max_length=MAX_SKILLS)]
System = Annotated[Text, Field(max_length=MAX_SYSTEM)]


class AgentCreate(WireModel):
    name: Name
    model: ModelChoice
    description: Annotated[Text, Field(max_length=MAX_DESCRIPTION)] | None = None
    system: System | None = None
    tools: Tools = Field(default_factory=list)
    mcp_servers: McpServers = Field(default_factory=list)
    skills: Skills = Field(default_factory=list)
    multiagent: Multiagent | None = None
    execution_identity: ExecutionIdentity | None = None
    metadata: Metadata = Field(default_factory=dict)

    def check_supported(self, at: str) -> None:
        check_model(self.model, below(at, "model"))
        check_servers_and_skills(self.mcp_servers, self.skills, at)
        check_tools(self.tools, below(at, "tools"))
        if self.multiagent is not None:
            raise unsupported(below(at, "multiagent"), "a multi-agent roster")
        if self.execution_identity is not None:
            self.execution_identity.check_supported(below(at, "execution_identity"))


def check_servers_and_skills(servers: list[McpServer] | None, skills: list[Skill] | None, at: str) -> None:
    """Raises `Unsupported` when there is any."""
    if servers:
        raise unsupported(below(at, "mcp_servers"), "connecting MCP servers")
    if skills:
        raise unsupported(below(at, "skills"), "attaching skills")


class AgentRetrieveQuery(QueryModel):
    version: Annotated[WholeNumber, Field(ge=1)] | None = None


class AgentListQuery(QueryModel):
    created_at_gte: Moment | None = Field(default=None, alias="created_at[gte]")
    created_at_lte: Moment | None = Field(default=None, alias="created_at[lte]")
    include_archived: Flag = False
    limit: Annotated[WholeNumber, Field(ge=1, le=100)] = 20
    page: str | None = None
