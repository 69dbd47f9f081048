"""The tools of an agent: settings resolved, offered to the model, and told apart when the model calls one.

An agent snapshot is the resolved form that responses echo: every built-in tool has a config of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from mango.domain.wire.tools import AGENT_TOOLSET, BUILT_IN, WEB

Json = dict[str, Any]
Owner = Literal["worker", "custom"]
Permission = Literal["always_allow", "always_ask"]

_WEB_SETTINGS = {
    "web_fetch": ("allowed_domains", "blocked_domains", "max_content_tokens", "url_sources"),
    "web_search": ("allowed_domains", "blocked_domains", "user_location"),
}


def resolve_tools(tools: Sequence[Json]) -> list[Json]:
    """Declared tools in the form of responses: defaults filled in, one config for each built-in tool."""
    return [_resolve_toolset(tool) if tool["type"] == AGENT_TOOLSET else dict(tool) for tool in tools]


def _resolve_toolset(tool: Json) -> Json:
    default = tool.get("default_config") or {}
    resolved: Json = {
        "enabled": default.get("enabled") is not False,
        "permission_policy": default.get("permission_policy") or {"type": "always_allow"},
    }
    own = {config["name"]: config for config in tool.get("configs") or []}
    configs = [_resolve_config(name, own.get(name, {}), resolved) for name in BUILT_IN]
    return {"type": AGENT_TOOLSET, "default_config": resolved, "configs": configs}


def _resolve_config(name: str, config: Json, default: Json) -> Json:
    enabled = config.get("enabled")
    resolved: Json = {
        "type": name,
        "name": name,
        "enabled": default["enabled"] if enabled is None else enabled,
        "permission_policy": config.get("permission_policy") or default["permission_policy"],
    }
    for setting in _WEB_SETTINGS.get(name, ()):
        resolved[setting] = config.get(setting)
    return resolved


def model_tools(snapshot: Mapping[str, Any]) -> list[Json]:
    """What the model is offered: enabled worker tools and custom tools. Web tools are not built (decision 40)."""
    offered: list[Json] = []
    for tool in snapshot["tools"]:
        if tool["type"] == "custom":
            offered.append({key: tool[key] for key in ("name", "description", "input_schema")})
    enabled = {config["name"] for config in _worker_configs(snapshot)}
    return [{"name": name, **schema} for name, schema in WORKER_TOOLS.items() if name in enabled] + offered


def classify(snapshot: Mapping[str, Any], tool_name: str) -> Owner | None:
    """Who runs a tool that the model calls; None when it was not offered."""
    if any(tool["type"] == "custom" and tool["name"] == tool_name for tool in snapshot["tools"]):
        return "custom"
    return "worker" if _worker_config(snapshot, tool_name) else None


def permission(snapshot: Mapping[str, Any], tool_name: str) -> Permission:
    """Whether a call needs a confirmation first. Custom tools never do: their application decides."""
    config = _worker_config(snapshot, tool_name)
    ask = config is not None and config["permission_policy"]["type"] == "always_ask"
    return "always_ask" if ask else "always_allow"


def _worker_config(snapshot: Mapping[str, Any], tool_name: str) -> Json | None:
    return next((config for config in _worker_configs(snapshot) if config["name"] == tool_name), None)


def _worker_configs(snapshot: Mapping[str, Any]) -> Iterator[Json]:
    for tool in snapshot["tools"]:
        if tool["type"] == AGENT_TOOLSET:
            yield from (config for config in tool["configs"] if config["enabled"] and config["name"] not in WEB)


def _schema(description: str, properties: Json, *required: str) -> Json:
    schema: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return {"description": description, "input_schema": schema}


def _text(description: str) -> Json:
    return {"type": "string", "description": description}


_PATH = _text("Path of the file: absolute, or relative to the working directory.")
_FOLDER = _text("Directory to search; the working directory when omitted.")

WORKER_TOOLS: dict[str, Json] = {
    "bash": _schema(
        "Runs a command in one long-lived bash shell and returns its output, standard error included. The working "
        "directory, variables and background jobs carry over from call to call. Nothing can be typed into a command: "
        "its standard input is empty. Only the end of very long output is kept. A command that exceeds its time is "
        "killed together with the shell, and the next call starts a new one.",
        {
            "command": _text("The command to run. Required unless `restart` is true."),
            "restart": {"type": "boolean", "description": "Start a fresh shell; what the old one held is gone."},
            "timeout_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "Milliseconds the command may take; 120000 when omitted.",
            },
        },
    ),
    "edit": _schema(
        "Changes a file by replacing an exact piece of its text. `old_string` must occur in the file exactly as given, "
        "white space included, and only once; add surrounding lines to make it unique, or set `replace_all` to "
        "change every occurrence. Read the file first.",
        {
            "file_path": _PATH,
            "old_string": _text("The text to be replaced, copied exactly from the file."),
            "new_string": _text("The text to put in its place; empty to remove it."),
            "replace_all": {"type": "boolean", "description": "Replace every occurrence; false when omitted."},
        },
        "file_path",
        "old_string",
        "new_string",
    ),
    "read": _schema(
        "Returns the content of a file as it is, without line numbers. Images and PDF documents are shown to you "
        "as such. Give `view_range` to see part of a large text file.",
        {
            "file_path": _PATH,
            "view_range": {
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 2,
                "maxItems": 2,
                "description": "First and last line to show, counted from 1, both included; a last line of 0 or "
                "below means the end of the file.",
            },
        },
        "file_path",
    ),
    "write": _schema(
        "Writes a file, replacing what it held. Missing directories are created. To change a part of a file that "
        "exists, use `edit`.",
        {"file_path": _PATH, "content": _text("All that the file is to hold.")},
        "file_path",
        "content",
    ),
    "glob": _schema(
        "Finds files by name. The pattern may hold `*`, `?`, character sets and `**` for any number of directories, "
        "as in `src/**/*.py`. Answers with absolute paths, the most recently changed first; long lists are cut.",
        {"pattern": _text("Relative pattern, without `..`."), "path": _FOLDER},
        "pattern",
    ),
    "grep": _schema(
        "Searches the content of files for a regular expression. Answers with one `path:line:text` for each matching "
        "line; long answers are cut. Binary files are skipped.",
        {
            "pattern": _text("The regular expression."),
            "path": _text("File or directory to search; the working directory when omitted."),
        },
        "pattern",
    ),
}
"""Description and input schema of the tools that workers run, under their official names (decision 9)."""
