"""How an activation ends, as the supervisor sees it: exit codes of `mango-worker run`."""

from enum import IntEnum

LOG_PREFIX = "mango-worker: "
"""Begins every line that an item process itself writes to standard error."""


class Outcome(IntEnum):
    FINISHED = 0  # nothing left to do, or asked to stop; the work item has been stopped
    FAILED = 1  # a fault here or a refusal that nobody foresaw
    LEASE_LOST = 3  # the work item belongs to somebody else or to nobody; it was left alone
    UNREACHABLE = 4  # the API never answered

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Outcome.FINISHED: "finished",
    Outcome.FAILED: "failed",
    Outcome.LEASE_LOST: "lease lost",
    Outcome.UNREACHABLE: "API not reachable from the sandbox",
}
