"""The `bash` tool: commands in one persistent shell per activation."""

import time
from collections.abc import Mapping

from mango_worker.text import decode_output, tail
from mango_worker.tools.base import Arguments, Cancel, ToolError, ToolResult, text_result
from mango_worker.tools.environment import tool_environment
from mango_worker.tools.shell import Finished, Shell

MAX_OUTPUT = 100_000
DEFAULT_TIMEOUT = 120.0
MAX_TIMEOUT = 145.0  # leaves time to kill the process tree within the limit that every tool has
SHELL_ENDED = "[the bash session ended; the next command starts a new one]"


class Bash:
    """Owns the shell. Used by one thread at a time."""

    name = "bash"
    arguments = frozenset({"command", "restart", "timeout_ms"})

    def __init__(self, directory: str, environment: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        self._environment = tool_environment(environment)
        self._shell: Shell | None = None

    def run(self, arguments: Arguments, cancel: Cancel) -> ToolResult:
        command = arguments.optional_string("command")
        timeout = _timeout(arguments.optional_integer("timeout_ms"))
        if arguments.flag("restart"):
            self.close()
            if command is None:
                return text_result("bash session restarted")
        if command is None:
            raise ToolError("command is required")
        return self._command(command, timeout, cancel)

    def close(self) -> None:
        """End the shell and everything it started."""
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    def _command(self, command: str, timeout: float, cancel: Cancel) -> ToolResult:
        shell = self._started(command)
        deadline = time.monotonic() + timeout
        while (finished := shell.poll()) is None:
            if cancel.thrown:
                return self._given_up(shell, f"[{cancel.reason}]")
            if time.monotonic() >= deadline:
                return self._given_up(shell, f"[timed out] the command ran longer than {timeout:g} s")
        output = _shown(*shell.take_output())
        if finished.shell_died:
            self.close()
        else:
            shell.tidy()
        return _result(output, finished)

    def _started(self, command: str) -> Shell:
        if self._shell is not None and not self._shell.alive:
            self.close()
        if self._shell is None:
            self._shell = Shell(self._directory, self._environment)
        try:
            self._shell.start(command)
        except BrokenPipeError:
            self.close()
            self._shell = Shell(self._directory, self._environment)
            self._shell.start(command)
        return self._shell

    def _given_up(self, shell: Shell, reason: str) -> ToolResult:
        output = _shown(*shell.take_output())
        gone = shell.close()
        self._shell = None
        survivors = "" if gone else "; some of its processes could not be killed"
        return text_result(_joined(output, f"{reason}; the bash session was restarted{survivors}"), True)


def _timeout(milliseconds: int | None) -> float:
    if milliseconds is None:
        return DEFAULT_TIMEOUT
    if milliseconds < 0:
        raise ToolError("timeout_ms must not be negative")
    return min(milliseconds / 1000, MAX_TIMEOUT) if milliseconds else DEFAULT_TIMEOUT


def _shown(raw: bytes, total: int) -> str:
    text, cut = tail(decode_output(raw), MAX_OUTPUT)
    return f"[output truncated at {MAX_OUTPUT} bytes]\n{text}" if cut or len(raw) < total else text


def _joined(output: str, last: str) -> str:
    return f"{output}{'' if not output or output.endswith(chr(10)) else chr(10)}{last}"


def _result(output: str, finished: Finished) -> ToolResult:
    if finished.shell_died:
        output = _joined(output, SHELL_ENDED)
    if finished.status:
        return text_result(_joined(output, f"exit code: {finished.status}"), True)
    return text_result(output)
