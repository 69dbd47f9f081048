"""The `write` tool: create or replace a file."""

from mango_worker.tools.base import Arguments, Cancel, ToolResult, text_result
from mango_worker.tools.workspace import Workspace


class Write:
    name = "write"
    arguments = frozenset({"file_path", "content"})

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def run(self, arguments: Arguments, cancel: Cancel) -> ToolResult:
        path, content = arguments.string("file_path"), arguments.string("content").encode("utf-8")
        cancel.check()
        self._workspace.write_bytes(self._workspace.resolve(path), content)
        return text_result(f"wrote {len(content)} bytes to {path}")
