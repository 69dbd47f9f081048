"""Inputs of the session routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag, model_validator

from mango.domain.wire.agents import (
    McpServers,
    ModelChoice,
    Skills,
    System,
    check_model,
    check_servers_and_skills,
)
from mango.domain.wire.base import Many, Metadata, ResourceId, Text, WireModel, below, by_type, unsupported
from mango.domain.wire.errors import fault
from mango.domain.wire.events import InitialEvent
from mango.domain.wire.query import Flag, Moment, QueryModel, WholeNumber
from mango.domain.wire.tools import Tools, check_tools

MAX_INITIAL_EVENTS = 50
MAX_RESOURCES = 500
MAX_TITLE = 512
MAX_VAULTS = 50
Version = Annotated[int, Field(ge=1)]


class AgentReference(WireModel):
    type: Literal["agent"]
    id: ResourceId
    version: Version | None = None


class AgentWithOverrides(WireModel):
    """Omitted fields are inherited, null or an empty list clears, a value replaces."""

    type: Literal["agent_with_overrides"]
    id: ResourceId
    version: Version | None = None
    model: ModelChoice | None = None
    system: System | None = None
    tools: Tools | None = None
    mcp_servers: McpServers | None = None
    skills: Skills | None = None

    @model_validator(mode="after")
    def _model_stays(self) -> AgentWithOverrides:
        if "model" in self.model_fields_set and self.model is None:
            raise fault("cannot be null (agent_model_required); omit it to inherit the agent's", "model")
        return self

    def check_supported(self, at: str) -> None:
        check_model(self.model, below(at, "model"))
        check_servers_and_skills(self.mcp_servers, self.skills, at)
        check_tools(self.tools, below(at, "tools"))


AgentChoice = Annotated[
    Annotated[ResourceId, Tag("<string>")]
    | Annotated[AgentReference, Tag("<agent>")]
    | Annotated[AgentWithOverrides, Tag("<agent_with_overrides>")],
    by_type("agent", "agent_with_overrides", text=True),
]


class Checkout(WireModel):
    type: Literal["branch", "commit"]
    name: Text | None = None
    sha: Text | None = None


class GitHubRepository(WireModel):
    type: Literal["github_repository"]
    url: Text
    authorization_token: Text | None = None
    checkout: Checkout | None = None
    mount_path: Text | None = None

    def check_supported(self, at: str) -> None:
        raise unsupported(at, "a resource of type 'github_repository'")


class FileResource(WireModel):
    type: Literal["file"]
    file_id: ResourceId
    mount_path: Text | None = None

    def check_supported(self, at: str) -> None:
        raise unsupported(at, "a resource of type 'file'")


class MemoryStoreResource(WireModel):
    type: Literal["memory_store"]
    memory_store_id: ResourceId
    access: Literal["read_write", "read_only"] | None = None
    instructions: Annotated[Text, Field(max_length=4096)] | None = None

    def check_supported(self, at: str) -> None:
        raise unsupported(at, "a resource of type 'memory_store'")


Resource = Annotated[
    Annotated[FileResource, Tag("<file>")]
    | Annotated[GitHubRepository, Tag("<github_repository>")]
    | Annotated[MemoryStoreResource, Tag("<memory_store>")],
    by_type("file", "github_repository", "memory_store"),
]


class MonetaryAmount(WireModel):
    amount: Annotated[str, Field(max_length=18)]
    currency: Literal["USD"]

    @model_validator(mode="after")
    def _whole_cents(self) -> MonetaryAmount:
        if not (self.amount.isascii() and self.amount.isdecimal() and int(self.amount) > 0):
            raise fault("must be whole cents above zero, digits only, such as '2500'", "amount")
        return self


class Budget(WireModel):
    type: Literal["limit"]
    max_list_cost: MonetaryAmount


class SessionCreate(WireModel):
    agent: AgentChoice
    environment_id: ResourceId
    title: Annotated[Text, Field(max_length=MAX_TITLE)] | None = None
    metadata: Metadata = Field(default_factory=dict)
    initial_events: Annotated[Many[InitialEvent], Field(max_length=MAX_INITIAL_EVENTS)] = Field(default_factory=list)
    resources: Annotated[Many[Resource], Field(max_length=MAX_RESOURCES)] = Field(default_factory=list)
    vault_ids: Annotated[Many[ResourceId], Field(max_length=MAX_VAULTS)] = Field(default_factory=list)
    budget: Budget | None = None

    def check_supported(self, at: str) -> None:
        if isinstance(self.agent, AgentWithOverrides):
            self.agent.check_supported(below(at, "agent"))
        for name, parts in (("initial_events", self.initial_events), ("resources", self.resources)):
            _check_each(parts, below(at, name))
        if self.vault_ids:
            raise unsupported(below(at, "vault_ids"), "attaching vaults")
        if self.budget is not None:
            raise unsupported(below(at, "budget"), "a session budget")


def _check_each(parts: list[Any], at: str) -> None:
    for n, part in enumerate(parts):
        part.check_supported(below(at, n))


Status = Literal["rescheduling", "running", "idle", "terminated"]


class SessionListQuery(QueryModel):
    agent_id: ResourceId | None = None
    agent_version: Annotated[WholeNumber, Field(ge=1)] | None = None
    created_at_gt: Moment | None = Field(default=None, alias="created_at[gt]")
    created_at_gte: Moment | None = Field(default=None, alias="created_at[gte]")
    created_at_lt: Moment | None = Field(default=None, alias="created_at[lt]")
    created_at_lte: Moment | None = Field(default=None, alias="created_at[lte]")
    deployment_id: ResourceId | None = None
    include_archived: Flag = False
    limit: Annotated[WholeNumber, Field(ge=1, le=1000)] = 100
    memory_store_id: ResourceId | None = None
    order: Literal["asc", "desc"] = "desc"
    page: str | None = None
    statuses: Many[Status] | None = None

    @model_validator(mode="after")
    def _version_needs_agent(self) -> SessionListQuery:
        if self.agent_version is not None and self.agent_id is None:
            raise fault("needs `agent_id` too", "agent_version")
        return self
