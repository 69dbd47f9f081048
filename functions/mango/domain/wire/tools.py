"""Tools as an agent declares them: the agent toolset, MCP toolsets and custom tools."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Tag, model_validator

from mango.domain.wire.base import Many, Text, WireModel, below, by_type, place_of, refuse_nul, unsupported
from mango.domain.wire.errors import fault

BUILT_IN = ("bash", "edit", "read", "write", "glob", "grep", "web_fetch", "web_search")
"""The agent toolset, in the order in which responses list it."""
WEB = ("web_fetch", "web_search")
AGENT_TOOLSET = "agent_toolset_20260401"
BuiltIn = Literal["bash", "edit", "read", "write", "glob", "grep", "web_fetch", "web_search"]

MAX_TOOL_DESCRIPTION = 4096
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}", re.ASCII)
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_COMBINERS = ("oneOf", "anyOf", "allOf")

Domains = Annotated[Many[Annotated[Text, Field(min_length=1, max_length=255)]], Field(min_length=1, max_length=64)]


class Policy(WireModel):
    type: Literal["always_allow", "always_ask", "auto"]

    def check_supported(self, at: str) -> None:
        if self.type == "auto":
            raise unsupported(at, "permission policy 'auto'")


class DefaultConfig(WireModel):
    """What holds for tools without a config of their own."""

    enabled: bool | None = None
    permission_policy: Policy | None = None

    def check_supported(self, at: str) -> None:
        if self.permission_policy is not None:
            self.permission_policy.check_supported(below(at, "permission_policy"))


class ToolReference(WireModel):
    type: Literal["tool_reference"]
    name: Text


class UrlSources(WireModel):
    """Which URLs `web_fetch` may take from a source."""

    type: Literal["all", "none", "only", "except"]
    tools: Many[ToolReference] | None = None


UrlSourcesChoice = Annotated[
    Annotated[Literal["all", "none"], Tag("<string>")]
    | Annotated[UrlSources, Tag("<all>")]
    | Annotated[UrlSources, Tag("<none>")]
    | Annotated[UrlSources, Tag("<only>")]
    | Annotated[UrlSources, Tag("<except>")],
    by_type("all", "none", "only", "except", text=True),
]


class WebFetchUrlSources(WireModel):
    client_tool_results: UrlSourcesChoice | None = None
    server_tool_results: UrlSourcesChoice | None = None
    user_input: UrlSourcesChoice | None = None


class UserLocation(WireModel):
    type: Literal["approximate"]
    city: Text | None = None
    country: Text | None = None
    region: Text | None = None
    timezone: Text | None = None


class ToolConfig(WireModel):
    """Settings of one built-in tool; those below `type` belong to the web tools."""

    name: BuiltIn
    enabled: bool | None = None
    permission_policy: Policy | None = None
    type: BuiltIn | None = None
    allowed_domains: Domains | None = None
    blocked_domains: Domains | None = None
    max_content_tokens: Annotated[int, Field(ge=1)] | None = None
    url_sources: WebFetchUrlSources | None = None
    user_location: UserLocation | None = None

    @model_validator(mode="after")
    def _fields_fit_the_tool(self) -> ToolConfig:
        if self.type is not None and self.type != self.name:
            raise fault(f"must be '{self.name}' like the name, or omitted", "type")
        allowed = _CONFIG_FIELDS.get(self.name, frozenset())
        for extra in sorted(self.model_fields_set - _COMMON_FIELDS - allowed):
            raise fault(f"is not a setting of tool '{self.name}'; remove it", extra)
        if self.allowed_domains is not None and self.blocked_domains is not None:
            raise fault("cannot be combined with `allowed_domains`", "blocked_domains")
        return self


_COMMON_FIELDS = frozenset({"name", "enabled", "permission_policy", "type"})
_CONFIG_FIELDS = {
    "web_fetch": frozenset({"allowed_domains", "blocked_domains", "max_content_tokens", "url_sources"}),
    "web_search": frozenset({"allowed_domains", "blocked_domains", "user_location"}),
}


class AgentToolset(WireModel):
    type: Literal["agent_toolset_20260401"]
    default_config: DefaultConfig | None = None
    configs: Many[ToolConfig] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_config_a_tool(self) -> AgentToolset:
        seen: set[str] = set()
        for n, config in enumerate(self.configs):
            if config.name in seen:
                raise fault(f"'{config.name}' has a config already", "configs", n, "name")
            seen.add(config.name)
        return self

    def check_supported(self, at: str) -> None:
        default = self.default_config or DefaultConfig()
        default.check_supported(below(at, "default_config"))
        for n, config in enumerate(self.configs):
            place = below(at, "configs", n)
            if config.permission_policy is not None:
                config.permission_policy.check_supported(below(place, "permission_policy"))
            enabled = config.enabled if config.enabled is not None else default.enabled is not False
            if config.name in WEB and enabled:
                raise unsupported(below(place, "enabled"), f"tool '{config.name}'")


class McpToolConfig(WireModel):
    name: Annotated[Text, Field(min_length=1, max_length=128)]
    enabled: bool | None = None
    permission_policy: Policy | None = None


class McpToolset(WireModel):
    type: Literal["mcp_toolset"]
    mcp_server_name: Annotated[Text, Field(min_length=1, max_length=255)]
    default_config: DefaultConfig | None = None
    configs: Many[McpToolConfig] = Field(default_factory=list)

    def check_supported(self, at: str) -> None:
        raise unsupported(at, "a tool of type 'mcp_toolset'")


def _tool_name(name: str) -> str:
    if not _TOOL_NAME.fullmatch(name):
        raise fault("must have 1 to 128 letters, digits, '_' or '-'")
    if name in BUILT_IN:
        raise fault(f"'{name}' is the name of a built-in tool; choose another")
    if name.startswith("mcp__"):
        raise fault("must not start with 'mcp__'")
    return name


def _input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") != "object":
        raise fault("must be 'object'", "type")
    for combiner in _COMBINERS:
        if combiner in schema:
            raise fault("is not allowed at the top level", combiner)
    _check_properties(schema.get("properties"))
    _check_required(schema.get("required"))
    refuse_nul(schema)
    reference = place_of(schema, _is_reference)
    if reference is not None:
        raise fault("is not allowed; write the schema out", *reference, "$ref")
    return schema


def _check_properties(properties: Any) -> None:
    if properties is None:
        return
    if not isinstance(properties, dict):
        raise fault("must be an object", "properties")
    for name in properties:
        if not _PROPERTY.fullmatch(name):
            raise fault("property names have 1 to 64 letters, digits, '_', '.' or '-'", "properties", name)


def _check_required(required: Any) -> None:
    if required is None:
        return
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise fault("must be an array of strings", "required")


def _is_reference(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("$ref"), str)


class CustomTool(WireModel):
    """A tool that the application runs."""

    type: Literal["custom"]
    name: Annotated[str, AfterValidator(_tool_name)]
    description: Annotated[Text, Field(min_length=1, max_length=MAX_TOOL_DESCRIPTION)]
    input_schema: Annotated[dict[str, Any], AfterValidator(_input_schema)]


Tool = Annotated[
    Annotated[AgentToolset, Tag("<agent_toolset_20260401>")]
    | Annotated[McpToolset, Tag("<mcp_toolset>")]
    | Annotated[CustomTool, Tag("<custom>")],
    by_type("agent_toolset_20260401", "mcp_toolset", "custom"),
]


def _distinct(tools: list[AgentToolset | McpToolset | CustomTool]) -> list[AgentToolset | McpToolset | CustomTool]:
    toolsets = 0
    names: set[str] = set()
    for n, tool in enumerate(tools):
        if isinstance(tool, AgentToolset):
            toolsets += 1
            if toolsets > 1:
                raise fault("only one tool of this type is allowed", n, "type")
        elif isinstance(tool, CustomTool):
            if tool.name in names:
                raise fault(f"another custom tool is called '{tool.name}'", n, "name")
            names.add(tool.name)
    return tools


MAX_TOOLS = 256
Tools = Annotated[Many[Tool], Field(max_length=MAX_TOOLS), AfterValidator(_distinct)]


def check_tools(tools: list[AgentToolset | McpToolset | CustomTool] | None, at: str) -> None:
    """Raises `Unsupported` at the first tool that is not built."""
    for n, tool in enumerate(tools or []):
        tool.check_supported(below(at, n))
