"""One bash process that lives across calls: its directory, variables, functions and background jobs stay.

Commands go in through its standard input, each wrapped in an `eval`. Output comes back on one pipe, the exit status
on another that only the shell itself holds: a background job that keeps the output pipe open delays nothing, and no
output can be mistaken for the end of a command.
"""

import contextlib
import os
import select
import shlex
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from mango_worker.tools import process_tree

_PIPE_SIZE = 65_536
_KEPT = 200_000  # raw bytes; twice what is shown, since cleaning up removes some
_TICK = 0.05


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `status` is None when the shell did not come to an end of it."""

    status: int | None
    shell_died: bool


class Shell:
    """A started shell. `close` must be called; a closed shell is of no further use."""

    def __init__(self, directory: str, environment: Mapping[str, str]) -> None:
        self._spare = process_tree.children()
        self._status_reader, status_writer = os.pipe()
        self._output_reader, output_writer = os.pipe()
        self._output_fd, self._status_fd = output_writer, status_writer
        try:
            self._process = subprocess.Popen(
                ["/bin/bash", "--noprofile", "--norc"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=directory,
                env=dict(environment),
                pass_fds=(status_writer, output_writer),
                start_new_session=True,
            )
        except OSError:
            os.close(self._status_reader)
            os.close(self._output_reader)
            raise
        finally:
            os.close(status_writer)
            os.close(output_writer)
        os.set_blocking(self._output_reader, False)
        self._output = _Tail(self._output_reader)
        self._status: bytes | None = b""
        self._marker = ""
        self._open = True

    @property
    def alive(self) -> bool:
        return self._open and self._process.poll() is None

    def start(self, command: str) -> None:
        """Begin a command. BrokenPipeError means that the shell is gone."""
        self._marker = uuid.uuid4().hex
        out, status = self._output_fd, self._status_fd
        line = (
            f"builtin eval {shlex.quote(command)} </dev/null >&{out} 2>&1 {out}>&- {status}>&-; "
            f"builtin printf '%s %d\\n' {self._marker} \"$?\" >&{status}\n"
        )
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode("utf-8"))
        self._process.stdin.flush()

    def poll(self) -> Finished | None:
        """Wait a twentieth of a second at most; how the command ended, or None while it runs."""
        if self._status is None:
            time.sleep(_TICK)
        elif select.select([self._status_reader], [], [], _TICK)[0]:
            part = os.read(self._status_reader, 4096)
            # End of file: the shell has exited or replaced itself by another program.
            self._status = self._status + part if part else None
        if self._status is None:
            code = self._process.poll()
            return None if code is None else Finished(code if code >= 0 else 128 - code, True)
        for line in self._status.split(b"\n")[:-1]:
            marker, _, code_text = line.partition(b" ")
            if marker == self._marker.encode():
                self._status = b""
                return Finished(int(code_text), False)
        return None

    def take_output(self) -> tuple[bytes, int]:
        """The last bytes of output since the last call, and how many bytes there were in all."""
        return self._output.take()

    def tidy(self) -> None:
        """Collect finished orphans."""
        process_tree.reap({*self._spare, self._process.pid})

    def close(self, bound: float = 2.0) -> bool:
        """Kill the shell and everything that descends from it; true if nothing is left after `bound` seconds."""
        if not self._open:
            return True
        self._open = False
        # The shell's own process is collected by Popen, so that its status is not lost to somebody else's wait.
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        gone = process_tree.kill_descendants(self._spare, bound)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        self._output.close()
        os.close(self._status_reader)
        return gone


class _Tail:
    """Drains the output pipe all the time, so that a background job never blocks, and keeps the last bytes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._kept = bytearray()
        self._total = 0
        self._closed = False
        self._thread = threading.Thread(target=self._drain, name="bash-output", daemon=True)
        self._thread.start()

    def take(self) -> tuple[bytes, int]:
        with self._lock:
            # What the command wrote before it ended is in the pipe by now, so one pipe's content is enough; a job
            # that writes on without end must not hold us.
            for _ in range(_PIPE_SIZE // 4096):
                if not self._read(4096):
                    break
            result = bytes(self._kept[-_KEPT:]), self._total
            self._kept.clear()
            self._total = 0
            return result

    def close(self) -> None:
        self._closed = True
        self._thread.join()
        os.close(self._descriptor)

    def _drain(self) -> None:
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        while not self._closed:
            if poller.poll(100):
                with self._lock:
                    some = self._read(_PIPE_SIZE)
                if not some:
                    # End of file: no process has the pipe open any more. Or `take` was quicker.
                    time.sleep(0.01)

    def _read(self, size: int) -> bool:
        try:
            part = os.read(self._descriptor, size)
        except BlockingIOError:
            return False
        self._kept += part
        self._total += len(part)
        if len(self._kept) > 2 * _KEPT:
            del self._kept[:-_KEPT]
        return bool(part)
