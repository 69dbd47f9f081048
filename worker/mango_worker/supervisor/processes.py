"""The sandbox that is none: the item process as a plain child process, for machines without Docker."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from mango_worker.errors import SandboxError
from mango_worker.frame import encode_frame
from mango_worker.supervisor.details import last_words
from mango_worker.supervisor.identity import state_directory
from mango_worker.supervisor.item_environment import item_environment
from mango_worker.supervisor.options import Options
from mango_worker.supervisor.sandbox import Ended
from mango_worker.supervisor.work import WorkItem

_POLL = 0.1
# What tools may know of the operator's environment. Everything else may be a credential.
_INHERITED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"})


class ProcessSandbox:
    """Workspaces are made below the workspace root, or below the user's state directory."""

    def __init__(self, options: Options) -> None:
        self._options = options
        root = options.workspace_root
        self._root = Path(root).absolute() if root else state_directory() / "workspaces"

    def check(self) -> list[str]:
        if sys.platform != "linux":
            raise SandboxError("`mango-worker process` needs Linux; use `mango-worker docker`")
        return []

    def sweep(self) -> int:
        """Nothing to do: an item process ends with its supervisor, however that ended."""
        return 0

    def prepare(self, item: WorkItem) -> list[str]:
        directory = self._root / item.session_id
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SandboxError(f"cannot make the workspace {directory}: {error.strerror}") from None
        return []

    def start(self, item: WorkItem) -> "ProcessRunning":
        workdir = str(self._root / item.session_id)
        frame = encode_frame(item.secret.encode("ascii", "replace"))
        environment = {
            **inherited_environment(os.environ),
            **item_environment(item, self._options, self._options.base_url, workdir, sandboxed=False),
            "MANGO_SUPERVISOR_PID": str(os.getpid()),
        }
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by remove()
        try:
            process = subprocess.Popen(
                # Without -P the workspace, as current directory, could put modules in our way.
                [sys.executable, "-P", "-m", "mango_worker", "run"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=workdir,
                env=environment,
                # Ctrl-C in the terminal is for the supervisor, which then stops the item in order.
                start_new_session=True,
            )
        except OSError as error:
            errors.close()
            raise SandboxError(f"the item process could not be started: {error.strerror}") from None
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(frame)
        return ProcessRunning(process, errors, item)


class ProcessRunning:
    """One child process. `errors` is the file that its standard error goes to."""

    def __init__(self, process: "subprocess.Popen[bytes]", errors: IO[bytes], item: WorkItem) -> None:
        self._process, self._errors, self._item = process, errors, item

    def wait(self, stop: threading.Event) -> Ended | None:
        while not stop.wait(_POLL):
            if self._process.poll() is not None:
                return self._ended()
        return None

    def stop(self, grace: float) -> Ended:
        self._process.terminate()
        deadline = time.monotonic() + grace
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, deadline - time.monotonic()))
        self._kill()
        return self._ended()

    def remove(self) -> None:
        self._kill()
        self._errors.close()

    def _kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _ended(self) -> Ended:
        code = self._process.returncode
        self._errors.seek(0)
        return Ended(code, last_words(self._errors.read()[-65_536:], code, self._item))


def inherited_environment(source: Mapping[str, str]) -> dict[str, str]:
    """The part of the operator's environment that an item process may see."""
    return {name: value for name, value in source.items() if name in _INHERITED or name.startswith("LC_")}
