"""All tools of one activation, and the boundary at which nothing a tool does can end the process."""

import threading
import traceback
from collections.abc import Mapping

from mango_worker.tools.base import Arguments, Cancel, Cancelled, Tool, ToolError, ToolResult, text_result
from mango_worker.tools.bash import Bash
from mango_worker.tools.edit import Edit
from mango_worker.tools.glob import Glob
from mango_worker.tools.grep import Grep
from mango_worker.tools.read import Read
from mango_worker.tools.workspace import Workspace
from mango_worker.tools.write import Write

MAX_SECONDS = 150.0


class Toolset:
    """The six tools over one workspace directory. `close` ends what they left running."""

    def __init__(self, directory: str, environment: Mapping[str, str] | None = None) -> None:
        workspace = Workspace(directory)
        self._bash = Bash(workspace.root, environment)
        tools = (self._bash, Read(workspace), Write(workspace), Edit(workspace), Glob(workspace), Grep(workspace))
        self._tools: dict[str, Tool] = {tool.name: tool for tool in tools}

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def run(self, name: str, values: object, cancel: Cancel, limit: float = MAX_SECONDS) -> ToolResult:
        """Run one call to its end, at most `limit` seconds (a little more when it must be broken off). Never raises."""
        results: list[ToolResult] = []
        thread = threading.Thread(
            target=lambda: results.append(self._attempt(name, values, cancel)), name=f"tool-{name}", daemon=True
        )
        thread.start()
        thread.join(limit)
        if thread.is_alive():
            cancel.throw(f"tool '{name}' timed out")
            thread.join(3.0)
        # A thread that still hangs (a dead network file system, say) is left behind; the session goes on.
        return results[0] if results else text_result(f"tool '{name}' timed out", True)

    def close(self) -> None:
        self._bash.close()

    def _attempt(self, name: str, values: object, cancel: Cancel) -> ToolResult:
        tool = self._tools[name]
        try:
            return tool.run(Arguments(values, tool.arguments), cancel)
        except (ToolError, Cancelled) as error:
            return text_result(f"{name}: {error}", True)
        except OSError as error:
            return text_result(f"{name}: {_os_error(error, values)}", True)
        except Exception as error:
            # The outermost frame of the tool's thread: a fault of ours must still answer the call, or the session
            # would wait for ever.
            traceback.print_exc()
            return text_result(f"{name}: internal error ({type(error).__name__})", True)


def _os_error(error: OSError, values: object) -> str:
    """The system's words, with the path as the model wrote it: files are opened relative to their directory."""
    path = None
    if isinstance(values, Mapping):
        path = values.get("file_path") or values.get("path")
    place = f"{path}: " if isinstance(path, str) else ""
    return f"{place}{error.strerror or error}"
