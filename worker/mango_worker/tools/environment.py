"""The environment variables that a tool's child process gets."""

import os
from collections.abc import Mapping

# Start-up files that would run before every command of a non-interactive shell.
_DROPPED = frozenset({"BASH_ENV", "ENV"})


def tool_environment(inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """The process's own environment without anything of ours, for a dumb terminal and without a pager."""
    source = os.environ if inherited is None else inherited
    kept = {
        name: value
        for name, value in source.items()
        if not name.upper().startswith(("MANGO_", "ANTHROPIC_")) and name not in _DROPPED
    }
    return {**kept, "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}
