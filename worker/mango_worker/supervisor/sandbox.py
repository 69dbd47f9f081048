"""What a supervisor needs of the place in which an item process runs."""

import threading
from dataclasses import dataclass
from typing import Protocol

from mango_worker.supervisor.work import WorkItem


@dataclass(frozen=True, slots=True)
class Ended:
    """How an item process ended. `code` is its exit code, None if that cannot be known; `details` are its own last
    lines about it, already safe to print."""

    code: int | None
    details: tuple[str, ...] = ()


class Sandbox(Protocol):
    """Creates and removes sandboxes, one for each work item. Methods raise SandboxError."""

    def check(self) -> list[str]:
        """Whether sandboxes can be made at all; remarks for the operator."""
        ...

    def sweep(self) -> int:
        """Remove what an earlier life of this supervisor left behind; how many there were."""
        ...

    def prepare(self, item: WorkItem) -> list[str]:
        """Make sure that the session's workspace is there, before the item is acknowledged; remarks."""
        ...

    def start(self, item: WorkItem) -> "Running":
        """Create and start the item process and hand it its credential."""
        ...


class Running(Protocol):
    """A started item process."""

    def wait(self, stop: threading.Event) -> Ended | None:
        """Wait for the end; None as soon as `stop` is set."""
        ...

    def stop(self, grace: float) -> Ended:
        """Ask it to end, and end it after `grace` seconds."""
        ...

    def remove(self) -> None:
        """Leave nothing behind but the workspace."""
        ...
