"""The `edit` tool: replace an exact string, and no byte besides.

The file is edited as bytes, so its line ends, byte order mark, tabs and even invalid UTF-8 stay as they are. In a
file whose lines all end with CRLF, the model's LF stands for CRLF.
"""

import re

from mango_worker.tools.base import Arguments, Cancel, ToolError, ToolResult, text_result
from mango_worker.tools.workspace import Workspace

MAX_FILE = 10 * 1024 * 1024
_BARE_LF = re.compile(rb"(?<!\r)\n")


class Edit:
    name = "edit"
    arguments = frozenset({"file_path", "old_string", "new_string", "replace_all"})

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def run(self, arguments: Arguments, cancel: Cancel) -> ToolResult:
        path, replace_all = arguments.string("file_path"), arguments.flag("replace_all")
        old, new = arguments.string("old_string").encode("utf-8"), arguments.string("new_string").encode("utf-8")
        if not old:
            raise ToolError("old_string is empty; use write to create a file")
        if old == new:
            raise ToolError("old_string and new_string are the same")
        resolved = self._workspace.resolve(path)
        before = self._workspace.read_bytes(resolved, MAX_FILE)
        after, count = replace(before, old, new, replace_all)
        cancel.check()
        self._workspace.write_bytes(resolved, after)
        return text_result(f"edited {path} ({count} replacement(s))")


def replace(content: bytes, old: bytes, new: bytes, replace_all: bool) -> tuple[bytes, int]:
    """The edited content and the number of replacements; ToolError unless `old` says clearly which are meant."""
    if content.count(b"\n") == content.count(b"\r\n") > 0:
        old, new = _BARE_LF.sub(b"\r\n", old), _BARE_LF.sub(b"\r\n", new)
    elif old not in content and b"\n" in old:
        # Line ends are mixed: the place may be one of those with CRLF.
        old, new = _BARE_LF.sub(b"\r\n", old), _BARE_LF.sub(b"\r\n", new)
    places = _places(content, old)
    if not places:
        raise ToolError("old_string not found: 0 matches; it must match exactly, including blanks and line ends")
    if replace_all:
        return content.replace(old, new), content.count(old)
    if places > 1:
        raise ToolError(f"old_string is not unique: {places} matches; add context, or set replace_all")
    return content.replace(old, new, 1), 1


def _places(content: bytes, old: bytes) -> int:
    """How often `old` occurs, overlapping occurrences included: they are just as ambiguous."""
    count, position = 0, content.find(old)
    while position >= 0:
        count, position = count + 1, content.find(old, position + 1)
    return count
