"""A table of inputs that are refused, each with the place and the text that clients are to see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mango.domain.errors import InvalidRequest, Unsupported
from mango.domain.wire.agents import AgentCreate, AgentListQuery, AgentRetrieveQuery
from mango.domain.wire.base import WireModel
from mango.domain.wire.environments import EnvironmentCreate, EnvironmentListQuery
from mango.domain.wire.events import EventListQuery, EventSend
from mango.domain.wire.query import QueryModel
from mango.domain.wire.sessions import SessionCreate, SessionListQuery
from mango.domain.wire.work import HeartbeatQuery, PollQuery, StopBody

Json = dict[str, Any]
Case = tuple[type[WireModel], Any, str]

AGENT: Json = {"name": "a", "model": "m"}
SESSION: Json = {"agent": "agent_x", "environment_id": "env_x"}
ENVIRONMENT: Json = {"name": "e"}
SCHEMA: Json = {"type": "object"}
CUSTOM: Json = {"type": "custom", "name": "look_up", "description": "d", "input_schema": SCHEMA}
TOOLSET = "agent_toolset_20260401"
TYPES = "'agent_toolset_20260401', 'mcp_toolset' or 'custom'"
EFFORTS = "'low', 'medium', 'high', 'xhigh' or 'max'"


def agents() -> Iterator[tuple[Json, str]]:
    yield {"model": "m"}, "name: is required"
    yield {"name": "a"}, "model: is required"
    yield {**AGENT, "name": ""}, "name: must not be empty"
    yield {**AGENT, "name": " \n"}, "name: must hold more than white space"
    yield {**AGENT, "name": 5}, "name: must be a string, not a number"
    yield {**AGENT, "name": None}, "name: must be a string, not null"
    yield {**AGENT, "name": "x" * 257}, "name: must have at most 256 characters, has 257"
    yield {**AGENT, "name": "a\x00"}, "name: must not hold the NUL character"
    yield {**AGENT, "description": "x" * 2049}, "description: must have at most 2048 characters, has 2049"
    yield {**AGENT, "system": "x" * 100_001}, "system: must have at most 100000 characters, has 100001"
    yield {**AGENT, "system": ["x"]}, "system: must be a string, not an array"
    yield {**AGENT, "nmae": "a"}, "nmae: is not a known field; remove it"
    yield {**AGENT, "id": "agent_x"}, "id: is not a known field; remove it"
    yield {**AGENT, "model": None}, "model: must be a model id or an object with `id`"
    yield {**AGENT, "model": []}, "model: must be a model id or an object with `id`"
    yield {**AGENT, "model": ""}, "model: must not be empty"
    yield {**AGENT, "model": {}}, "model.id: is required"
    yield {**AGENT, "model": {"id": "m", "effort": "huge"}}, f"model.effort: must be {EFFORTS}"
    yield {**AGENT, "model": {"id": "m", "effort": {"type": "huge"}}}, f"model.effort.type: must be {EFFORTS}"
    yield {**AGENT, "model": {"id": "m", "effort": {}}}, "model.effort.type: is required"
    yield {**AGENT, "model": {"id": "m", "speed": "slow"}}, "model.speed: must be 'standard' or 'fast'"
    yield {**AGENT, "model": {"id": "m", "x": 1}}, "model.x: is not a known field; remove it"
    yield {**AGENT, "metadata": None}, "metadata: must be an object, not null"
    yield {**AGENT, "metadata": {"k": 1}}, "metadata.k: must be a string, not a number"
    yield {**AGENT, "metadata": {"k": None}}, "metadata.k: must be a string, not null"
    yield {**AGENT, "metadata": {"k": "x" * 513}}, "metadata.k: must have at most 512 characters, has 513"
    yield {**AGENT, "metadata": {"k": "\x00"}}, "metadata.k: must not hold the NUL character"
    yield (
        {**AGENT, "metadata": {"": "x"}},
        "metadata: keys must have 1 to 64 characters and no NUL; '' does not",
    )
    yield {**AGENT, "metadata": {str(n): "x" for n in range(17)}}, "metadata: must have at most 16 pairs, has 17"
    yield {**AGENT, "mcp_servers": None}, "mcp_servers: must be an array, not null"
    yield {**AGENT, "mcp_servers": [{"type": "url", "name": "a"}]}, "mcp_servers.0.url: is required"
    url = "must be an absolute http or https URL without user name and fragment"
    for bad in ("x", "ftp://a/", "https://", "https://u@a/", "https://a/#b", "https://[a/"):
        yield {**AGENT, "mcp_servers": [{"type": "url", "name": "a", "url": bad}]}, f"mcp_servers.0.url: {url}"
    yield {**AGENT, "skills": [{"type": "own", "skill_id": "s"}]}, "skills.0.type: must be 'anthropic' or 'custom'"
    yield {**AGENT, "multiagent": {"type": "x"}}, "multiagent.type: must be 'coordinator' or 'multiagent_20261001'"
    yield {**AGENT, "multiagent": []}, "multiagent: must be an object, not an array"
    yield (
        {**AGENT, "execution_identity": {"type": "x"}},
        "execution_identity.type: must be 'service_account' or 'aws_role'",
    )


def tools() -> Iterator[tuple[Any, str]]:
    """The tools of an agent, and what is said about the first of them."""
    yield None, "tools: must be an array, not null"
    yield "bash", "tools: must be an array, not a string"
    yield ["bash"], f"tools.0: must be an object with `type` {TYPES}"
    yield [{}], "tools.0.type: is required"
    yield [{"type": "bash"}], f"tools.0.type: must be {TYPES}"
    yield [{"type": 5}], f"tools.0.type: must be {TYPES}"
    yield [{"type": TOOLSET}] * 2, "tools.1.type: only one tool of this type is allowed"
    yield [CUSTOM] * 2, "tools.1.name: another custom tool is called 'look_up'"
    yield [{**CUSTOM, "name": f"n{n}"} for n in range(257)], "tools: must have at most 256 entries, has 257"
    yield (
        [{"type": TOOLSET, "configs": [{"name": "nope"}]}],
        (
            "tools.0.configs.0.name: must be 'bash', 'edit', 'read', 'write', 'glob', 'grep', 'web_fetch' "
            "or 'web_search'"
        ),
    )
    yield [{"type": TOOLSET, "configs": [{}]}], "tools.0.configs.0.name: is required"
    yield (
        [{"type": TOOLSET, "configs": [{"name": "bash"}, {"name": "read"}, {"name": "bash"}]}],
        ("tools.0.configs.2.name: 'bash' has a config already"),
    )
    yield (
        [{"type": TOOLSET, "configs": [{"name": "bash", "enabled": "yes"}]}],
        ("tools.0.configs.0.enabled: must be true or false, not a string"),
    )
    yield (
        [{"type": TOOLSET, "configs": [{"name": "bash", "enabled": 1}]}],
        ("tools.0.configs.0.enabled: must be true or false, not a number"),
    )
    yield (
        [{"type": TOOLSET, "configs": [{"name": "bash", "type": "read"}]}],
        ("tools.0.configs.0.type: must be 'bash' like the name, or omitted"),
    )
    yield (
        [{"type": TOOLSET, "configs": [{"name": "bash", "allowed_domains": ["a.org"]}]}],
        ("tools.0.configs.0.allowed_domains: is not a setting of tool 'bash'; remove it"),
    )
    yield (
        [{"type": TOOLSET, "configs": [{"name": "web_search", "max_content_tokens": 5, "enabled": False}]}],
        ("tools.0.configs.0.max_content_tokens: is not a setting of tool 'web_search'; remove it"),
    )
    both = {"name": "web_fetch", "enabled": False, "allowed_domains": ["a.org"], "blocked_domains": ["b.org"]}
    yield (
        [{"type": TOOLSET, "configs": [both]}],
        ("tools.0.configs.0.blocked_domains: cannot be combined with `allowed_domains`"),
    )
    yield (
        [{"type": TOOLSET, "configs": [{"name": "bash", "permission_policy": "always_ask"}]}],
        ("tools.0.configs.0.permission_policy: must be an object, not a string"),
    )
    yield (
        [{"type": TOOLSET, "default_config": {"permission_policy": {"type": "never"}}}],
        ("tools.0.default_config.permission_policy.type: must be 'always_allow', 'always_ask' or 'auto'"),
    )
    yield (
        [{"type": TOOLSET, "default_config": {"timeout": 5}}],
        ("tools.0.default_config.timeout: is not a known field; remove it"),
    )
    yield [{"type": "mcp_toolset"}], "tools.0.mcp_server_name: is required"


def custom_tools() -> Iterator[tuple[Json, str]]:
    """Changes of a custom tool, and what is said about its part."""
    characters = "must have 1 to 128 letters, digits, '_' or '-'"
    for bad in ("", "two words", "x" * 129, "é", "a\n"):
        yield {"name": bad}, f"name: {characters}"
    yield {"name": "bash"}, "name: 'bash' is the name of a built-in tool; choose another"
    yield {"name": "mcp__x"}, "name: must not start with 'mcp__'"
    yield {"description": ""}, "description: must not be empty"
    yield {"description": "x" * 4097}, "description: must have at most 4096 characters, has 4097"
    yield {"input_schema": {}}, "input_schema.type: must be 'object'"
    yield {"input_schema": []}, "input_schema: must be an object, not an array"
    yield {"input_schema": {**SCHEMA, "anyOf": []}}, "input_schema.anyOf: is not allowed at the top level"
    yield {"input_schema": {**SCHEMA, "properties": []}}, "input_schema.properties: must be an object"
    yield {"input_schema": {**SCHEMA, "required": ["a", 1]}}, "input_schema.required: must be an array of strings"
    yield (
        {"input_schema": {**SCHEMA, "properties": {"a b": {}}}},
        ("input_schema.properties.a b: property names have 1 to 64 letters, digits, '_', '.' or '-'"),
    )
    reference = {"$ref": "#/$defs/a"}
    yield (
        {"input_schema": {**SCHEMA, "properties": {"a": {"items": [reference]}}}},
        ("input_schema.properties.a.items.0.$ref: is not allowed; write the schema out"),
    )
    yield (
        {"input_schema": {**SCHEMA, "description": "\x00"}},
        ("input_schema.description: must not hold the NUL character"),
    )
    yield {"strict": True}, "strict: is not a known field; remove it"


def contents() -> Iterator[tuple[Any, str]]:
    """Contents of a message, and what is said about them."""
    yield "hi", ": must be an array, not a string"
    yield [], ": must not be empty"
    yield ["hi"], ".0: must be an object with `type` 'text', 'image' or 'document'"
    yield [{"type": "redacted"}], ".0.type: must be 'text', 'image' or 'document'"
    yield [{"type": "search_result"}], ".0.type: must be 'text', 'image' or 'document'"
    yield [{"type": "text"}], ".0.text: is required"
    yield [{"type": "text", "text": ""}], ".0.text: must hold more than white space; a model refuses blank text"
    yield [{"type": "text", "text": "a\x00"}], ".0.text: must not hold the NUL character"
    yield [{"type": "text", "text": "a", "citations": []}], ".0.citations: is not a known field; remove it"
    yield [{"type": "text", "text": "a"}] * 1001, ": must have at most 1000 entries, has 1001"
    image = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    yield [{"type": "image"}], ".0.source: is required"
    yield [{"type": "image", "source": {"type": "text"}}], ".0.source.type: must be 'base64', 'url' or 'file'"
    yield (
        [{"type": "image", "source": {**image, "media_type": "image/tiff"}}],
        (".0.source.media_type: must be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"),
    )
    for bad in ("aGk", "a b=", "aGk=\n", "a-k="):
        yield (
            [{"type": "image", "source": {**image, "data": bad}}],
            (".0.source.data: must be standard base64 with padding and without line breaks"),
        )
    yield [{"type": "image", "source": {**image, "data": ""}}], ".0.source.data: must not be empty"
    yield [{"type": "document", "source": image}], ".0.source.media_type: must be 'application/pdf'"
    plain = {"type": "text", "media_type": "text/html", "data": "x"}
    yield [{"type": "document", "source": plain}], ".0.source.media_type: must be 'text/plain'"
    yield [{"type": "document", "source": {"type": "url", "url": ""}}], ".0.source.url: must not be empty"


def sent() -> Iterator[tuple[Json, str]]:
    """Single events, and what is said about them."""
    types = (
        "'user.message', 'user.interrupt', 'user.tool_confirmation', 'user.custom_tool_result', 'user.tool_result', "
        "'user.define_outcome' or 'system.message'"
    )
    yield {"type": "agent.message"}, f".type: must be {types}"
    yield {"content": []}, ".type: is required"
    yield {"type": "user.interrupt", "id": "sevt_x"}, ".id: is not a known field; remove it"
    yield {"type": "user.interrupt", "processed_at": None}, ".processed_at: is not a known field; remove it"
    yield {"type": "user.interrupt", "session_thread_id": ""}, ".session_thread_id: must not be empty"
    yield {"type": "user.tool_confirmation", "tool_use_id": "x"}, ".result: is required"
    yield (
        {"type": "user.tool_confirmation", "tool_use_id": "x", "result": "maybe"},
        ".result: must be 'allow' or 'deny'",
    )
    yield (
        {"type": "user.tool_confirmation", "tool_use_id": "x", "result": "allow", "deny_message": "no"},
        ".deny_message: goes with `result` 'deny' only",
    )
    yield {"type": "user.tool_result"}, ".tool_use_id: is required"
    yield {"type": "user.tool_result", "tool_use_id": 5}, ".tool_use_id: must be a string, not a number"
    yield (
        {"type": "user.tool_result", "tool_use_id": "x", "is_error": "no"},
        (".is_error: must be true or false, not a string"),
    )
    yield {"type": "user.tool_result", "tool_use_id": "x", "content": "ok"}, ".content: must be an array, not a string"
    yield {"type": "user.custom_tool_result", "tool_use_id": "x"}, ".custom_tool_use_id: is required"
    yield {"type": "user.define_outcome", "description": "d"}, ".rubric: is required"
    outcome = {"type": "user.define_outcome", "description": "d", "rubric": {"type": "text", "content": "c"}}
    yield {**outcome, "max_iterations": 21}, ".max_iterations: must be at most 20"
    yield {**outcome, "max_iterations": 2.0}, ".max_iterations: must be a whole number, not 2.0"
    yield {"type": "system.message", "content": []}, ".content: must not be empty"


def sessions() -> Iterator[tuple[Json, str]]:
    yield {"environment_id": "env_x"}, "agent: is required"
    yield {"agent": "agent_x"}, "environment_id: is required"
    choice = "must be a string or an object with `type` 'agent' or 'agent_with_overrides'"
    yield {**SESSION, "agent": None}, f"agent: {choice}"
    yield {**SESSION, "agent": ""}, "agent: must not be empty"
    yield {**SESSION, "agent": {"id": "x"}}, "agent.type: is required"
    yield {**SESSION, "agent": {"type": "agents", "id": "x"}}, "agent.type: must be 'agent' or 'agent_with_overrides'"
    yield {**SESSION, "agent": {"type": "agent"}}, "agent.id: is required"
    yield {**SESSION, "agent": {"type": "agent", "id": "x", "version": 0}}, "agent.version: must be at least 1"
    yield (
        {**SESSION, "agent": {"type": "agent", "id": "x", "version": "1"}},
        ("agent.version: must be a whole number, not a string"),
    )
    yield (
        {**SESSION, "agent": {"type": "agent", "id": "x", "version": True}},
        ("agent.version: must be a whole number, not a boolean"),
    )
    yield (
        {**SESSION, "agent": {"type": "agent", "id": "x", "system": "s"}},
        ("agent.system: is not a known field; remove it"),
    )
    overrides = {"type": "agent_with_overrides", "id": "x"}
    yield (
        {**SESSION, "agent": {**overrides, "model": None}},
        ("agent.model: cannot be null (agent_model_required); omit it to inherit the agent's"),
    )
    yield (
        {**SESSION, "agent": {**overrides, "tools": [{"type": TOOLSET}] * 2}},
        ("agent.tools.1.type: only one tool of this type is allowed"),
    )
    yield {**SESSION, "metadata": None}, "metadata: must be an object, not null"
    yield {**SESSION, "initial_events": None}, "initial_events: must be an array, not null"
    yield (
        {**SESSION, "initial_events": [{"type": "user.interrupt"}]},
        ("initial_events.0.type: must be 'user.message' or 'user.define_outcome'"),
    )
    message = {"type": "user.message", "content": [{"type": "text", "text": "hi"}]}
    yield {**SESSION, "initial_events": [message] * 51}, "initial_events: must have at most 50 entries, has 51"
    yield (
        {**SESSION, "resources": [{"type": "disk"}]},
        ("resources.0.type: must be 'file', 'github_repository' or 'memory_store'"),
    )
    for amount in ("0", "", "-5", "25.00", "٣", " 5"):
        budget = {"type": "limit", "max_list_cost": {"amount": amount, "currency": "USD"}}
        yield (
            {**SESSION, "budget": budget},
            ("budget.max_list_cost.amount: must be whole cents above zero, digits only, such as '2500'"),
        )
    yield {**SESSION, "vault_ids": "vlt_x"}, "vault_ids: must be an array, not a string"


def environments() -> Iterator[tuple[Json, str]]:
    yield {}, "name: is required"
    yield {**ENVIRONMENT, "config": {}}, "config.type: is required"
    yield {**ENVIRONMENT, "config": {"type": "moon"}}, "config.type: must be 'cloud' or 'self_hosted'"
    yield (
        {**ENVIRONMENT, "config": {"type": "self_hosted", "networking": None}},
        ("config.networking: is not a known field; remove it"),
    )
    hosts = {"type": "limited", "allowed_hosts": ["https://a.org"]}
    yield (
        {**ENVIRONMENT, "config": {"type": "cloud", "networking": hosts}},
        ("config.networking.allowed_hosts.0: must be a host name or `*.` before one, without scheme, port or path"),
    )
    yield {**ENVIRONMENT, "scope": "galaxy"}, "scope: must be 'organization' or 'account'"


def invalid_cases() -> Iterator[Case]:
    yield from ((AgentCreate, value, said) for value, said in agents())
    yield from ((AgentCreate, {**AGENT, "tools": value}, said) for value, said in tools())
    for change, said in custom_tools():
        yield AgentCreate, {**AGENT, "tools": [{**CUSTOM, **change}]}, f"tools.0.{said}"
    for content, said in contents():
        event = {"type": "user.message", "content": content}
        yield EventSend, {"events": [event]}, f"events.0.content{said}"
        yield SessionCreate, {**SESSION, "initial_events": [event]}, f"initial_events.0.content{said}"
    yield from ((EventSend, {"events": [value]}, f"events.0{said}") for value, said in sent())
    yield EventSend, {}, "events: is required"
    yield EventSend, {"events": []}, "events: must not be empty"
    yield EventSend, {"events": [{"type": "user.interrupt"}] * 101}, "events: must have at most 100 entries, has 101"
    yield from ((SessionCreate, value, said) for value, said in sessions())
    yield from ((EnvironmentCreate, value, said) for value, said in environments())
    yield StopBody, {"force": "true"}, "force: must be true or false, not a string"
    for model in (AgentCreate, SessionCreate, EnvironmentCreate, EventSend, StopBody):
        for value, kind in (([], "an array"), (None, "null"), ("x", "a string"), (5, "a number"), (True, "a boolean")):
            yield model, value, f"body: must be an object, not {kind}"


@pytest.mark.parametrize(("model", "value", "said"), list(invalid_cases()), ids=lambda part: str(part)[:60])
def test_invalid(model: type[WireModel], value: Any, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        model.parse(value)
    assert type(caught.value) is InvalidRequest
    assert caught.value.message == said


def unsupported_cases() -> Iterator[Case]:
    def agent(**fields: Any) -> Json:
        return {**AGENT, **fields}

    server = {"type": "url", "name": "a", "url": "https://a.org/"}
    yield AgentCreate, agent(mcp_servers=[server]), "mcp_servers: connecting MCP servers"
    mcp = {"type": "mcp_toolset", "mcp_server_name": "a"}
    yield AgentCreate, agent(tools=[mcp]), "tools.0: a tool of type 'mcp_toolset'"
    yield AgentCreate, agent(skills=[{"type": "custom", "skill_id": "s"}]), "skills: attaching skills"
    yield AgentCreate, agent(multiagent={"type": "coordinator", "agents": []}), "multiagent: a multi-agent roster"
    role = {"type": "aws_role", "role_arn": "arn:aws:iam::1:role/x"}
    yield AgentCreate, agent(execution_identity=role), ("execution_identity: an execution identity of type 'aws_role'")
    yield (
        AgentCreate,
        agent(model={"id": "m", "inference_geo": "eu"}),
        ("model.inference_geo: choosing where inference runs"),
    )
    for name in ("web_search", "web_fetch"):
        for config in ({"name": name, "enabled": True}, {"name": name}, {"name": name, "enabled": None}):
            yield (
                AgentCreate,
                agent(tools=[{"type": TOOLSET, "configs": [config]}]),
                (f"tools.0.configs.0.enabled: tool '{name}'"),
            )
    auto = {"type": "auto"}
    yield (
        AgentCreate,
        agent(tools=[{"type": TOOLSET, "default_config": {"permission_policy": auto}}]),
        ("tools.0.default_config.permission_policy: permission policy 'auto'"),
    )
    yield (
        AgentCreate,
        agent(tools=[{"type": TOOLSET, "configs": [{"name": "bash", "permission_policy": auto}]}]),
        ("tools.0.configs.0.permission_policy: permission policy 'auto'"),
    )
    yield (
        EnvironmentCreate,
        {**ENVIRONMENT, "config": {"type": "cloud"}},
        ("config.type: an environment of type 'cloud'"),
    )
    yield EnvironmentCreate, {**ENVIRONMENT, "scope": "account"}, "scope: scope 'account'"
    yield SessionCreate, {**SESSION, "vault_ids": ["vlt_x"]}, "vault_ids: attaching vaults"
    budget = {"type": "limit", "max_list_cost": {"amount": "5", "currency": "USD"}}
    yield SessionCreate, {**SESSION, "budget": budget}, "budget: a session budget"
    for resource in (
        {"type": "file", "file_id": "file_x"},
        {"type": "github_repository", "url": "https://github.com/a/b"},
        {"type": "memory_store", "memory_store_id": "memstore_x"},
    ):
        yield (
            SessionCreate,
            {**SESSION, "resources": [resource]},
            (f"resources.0: a resource of type '{resource['type']}'"),
        )
    overrides = {"type": "agent_with_overrides", "id": "x", "mcp_servers": [server]}
    yield SessionCreate, {**SESSION, "agent": overrides}, "agent.mcp_servers: connecting MCP servers"
    outcome = {"type": "user.define_outcome", "description": "d", "rubric": {"type": "text", "content": "c"}}
    yield (
        SessionCreate,
        {**SESSION, "initial_events": [outcome]},
        ("initial_events.0: an event of type 'user.define_outcome'"),
    )
    yield EventSend, {"events": [outcome]}, "events.0: an event of type 'user.define_outcome'"
    system = {"type": "system.message", "content": [{"type": "text", "text": "x"}]}
    yield EventSend, {"events": [system]}, "events.0: an event of type 'system.message'"
    for block in ("image", "document"):
        for source in ({"type": "url", "url": "https://a.org/x"}, {"type": "file", "file_id": "file_x"}):
            event = {"type": "user.message", "content": [{"type": block, "source": source}]}
            yield EventSend, {"events": [event]}, (f"events.0.content.0.source: a source of type '{source['type']}'")
            result = {"type": "user.tool_result", "tool_use_id": "x", "content": event["content"]}
            yield (
                EventSend,
                {"events": [{"type": "user.interrupt"}, result]},
                (f"events.1.content.0.source: a source of type '{source['type']}'"),
            )


@pytest.mark.parametrize(("model", "value", "said"), list(unsupported_cases()), ids=lambda part: str(part)[:60])
def test_unsupported(model: type[WireModel], value: Any, said: str) -> None:
    with pytest.raises(Unsupported) as caught:
        model.parse(value)
    assert caught.value.message == f"{said} is not supported yet"


QUERIES: list[tuple[type[QueryModel], dict[str, list[str]], str]] = [
    (AgentListQuery, {"limit": ["0"]}, "limit: must be at least 1"),
    (AgentListQuery, {"limit": ["101"]}, "limit: must be at most 100"),
    (AgentListQuery, {"limit": ["+5"]}, "limit: must be a whole number"),
    (AgentListQuery, {"limit": ["５"]}, "limit: must be a whole number"),
    (AgentListQuery, {"limit": [""]}, "limit: must be a whole number"),
    (AgentListQuery, {"limit": ["9" * 400]}, "limit: must be a whole number"),
    (AgentListQuery, {"limit": ["5", "5"]}, "limit: is given more than once"),
    (AgentListQuery, {"include_archived": ["1"]}, "include_archived: must be true or false"),
    (AgentListQuery, {"created_at[gt]": ["2026-01-01"]}, "created_at[gt]: is not a known field; remove it"),
    (AgentRetrieveQuery, {"version": ["0"]}, "version: must be at least 1"),
    (EnvironmentListQuery, {"limit": ["1001"]}, "limit: must be at most 1000"),
    (EventListQuery, {"limit": ["1001"]}, "limit: must be at most 1000"),
    (EventListQuery, {"order": ["up"]}, "order: must be 'asc' or 'desc'"),
    (EventListQuery, {"types[]": ["agent.message", "x"]}, "types.1: must be one of the 41 known values"),
    (EventListQuery, {"types": ["session.deleted"]}, "types.0: must be one of the 41 known values"),
    (EventListQuery, {"order[]": ["asc"]}, "order[]: is not a known field; remove it"),
    (EventListQuery, {"created_at_gt": ["2026-01-01"]}, "created_at_gt: is spelt `created_at[gt]`"),
    (SessionListQuery, {"agent_version": ["1"]}, "agent_version: needs `agent_id` too"),
    (
        SessionListQuery,
        {"statuses[]": ["asleep"]},
        ("statuses.0: must be 'rescheduling', 'running', 'idle' or 'terminated'"),
    ),
    (PollQuery, {"block_ms": ["0"]}, "block_ms: must be at least 1"),
    (PollQuery, {"block_ms": ["1000"]}, "block_ms: must be at most 999"),
    (PollQuery, {"reclaim_older_than_ms": ["0"]}, "reclaim_older_than_ms: must be at least 1"),
    (HeartbeatQuery, {"desired_ttl_seconds": ["301"]}, "desired_ttl_seconds: must be at most 300"),
    (
        HeartbeatQuery,
        {"expected_last_heartbeat": ["x" * 65]},
        ("expected_last_heartbeat: must have at most 64 characters, has 65"),
    ),
    *[
        (
            EventListQuery,
            {"created_at[gte]": [bad]},
            ("created_at[gte]: must be an RFC 3339 date and time such as 2026-11-29T16:41:49Z"),
        )
        for bad in ("", "now", "20260101", "2026-W01-1", "1767225600", "2026-01-01T00:00:00 Z")
    ],
    (
        EventListQuery,
        {"created_at[gte]": ["2026-02-30"]},
        ("created_at[gte]: is not a point in time: day is out of range for month"),
    ),
]


@pytest.mark.parametrize(("model", "values", "said"), QUERIES, ids=lambda part: str(part)[:60])
def test_invalid_queries(model: type[QueryModel], values: dict[str, list[str]], said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        model.from_query(values)
    assert caught.value.message == said
