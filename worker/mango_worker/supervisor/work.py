"""Work items as the API hands them out."""

import re
from dataclasses import dataclass, field
from typing import Any

from mango_worker.errors import ApiUnavailable

# Ids become names of containers, volumes and directories.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A claimed item. `kind` is `session` for anything that this worker can run."""

    id: str
    environment_id: str
    kind: str
    session_id: str
    secret: str = field(repr=False)

    @property
    def path(self) -> str:
        return f"/v1/environments/{self.environment_id}/work/{self.id}"


def parse_work(answer: Any, environment_id: str) -> WorkItem:
    """The item in a poll's answer. Raises ApiUnavailable when it is not one: the API is broken, not the request."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, dict):
        raise ApiUnavailable("the poll's answer is no work item")
    kind, work_id, session_id = str(data.get("type")), answer.get("id"), data.get("id", "")
    if not is_id(work_id) or (kind == "session" and not is_id(session_id)):
        raise ApiUnavailable("the work item has no usable ids")
    secret = answer.get("secret")
    return WorkItem(str(work_id), environment_id, kind, str(session_id), secret if isinstance(secret, str) else "")


def is_id(value: object) -> bool:
    """Whether it can be the id of a work item or session."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None
