"""What the supervisor tells the item process through its environment. The credential is not among it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from mango_worker.durations import parse_duration
from mango_worker.errors import WorkerError


@dataclass(frozen=True, slots=True)
class ItemSettings:
    """`max_idle` is in seconds; `parent` is the supervisor's pid if the process must end with it, else None."""

    base_url: str
    work_id: str
    environment_id: str
    session_id: str
    workdir: str
    max_idle: float
    parent: int | None = None

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None) -> "ItemSettings":
        source = os.environ if environment is None else environment
        if source.get("MANGO_SANDBOXED") not in ("0", "1"):
            raise WorkerError("`mango-worker run` is started by a supervisor: `mango-worker docker` or `process`")
        parent = source.get("MANGO_SUPERVISOR_PID", "")
        return ItemSettings(
            base_url=_required(source, "MANGO_BASE_URL"),
            work_id=_required(source, "MANGO_WORK_ID"),
            environment_id=_required(source, "MANGO_ENVIRONMENT_ID"),
            session_id=_required(source, "MANGO_SESSION_ID"),
            workdir=source.get("MANGO_WORKDIR") or "/workspace",
            max_idle=parse_duration(source.get("MANGO_WORKER_MAX_IDLE") or "1m"),
            parent=int(parent) if parent.isdigit() else None,
        )

    @property
    def work_path(self) -> str:
        return f"/v1/environments/{self.environment_id}/work/{self.work_id}"

    @property
    def session_path(self) -> str:
        return f"/v1/sessions/{self.session_id}"


def _required(source: Mapping[str, str], name: str) -> str:
    value = source.get(name, "").strip()
    if not value:
        raise WorkerError(f"{name} is not set")
    return value
