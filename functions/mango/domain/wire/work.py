"""Inputs of the work routes of an environment."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mango.domain.wire.base import ResourceId, WireModel
from mango.domain.wire.query import QueryModel, WholeNumber

MAX_RECLAIM_MS = 86_400_000


class PollQuery(QueryModel):
    """Without `block_ms` a poll answers at once. `work_id` claims that item only."""

    block_ms: Annotated[WholeNumber, Field(ge=1, le=999)] | None = None
    reclaim_older_than_ms: Annotated[WholeNumber, Field(ge=1, le=MAX_RECLAIM_MS)] | None = None
    work_id: ResourceId | None = None


class HeartbeatQuery(QueryModel):
    """`expected_last_heartbeat` is the answer's `last_heartbeat` before this one, or `NO_HEARTBEAT`."""

    desired_ttl_seconds: Annotated[WholeNumber, Field(ge=1, le=300)] | None = None
    expected_last_heartbeat: Annotated[str, Field(max_length=64)] | None = None


class StopBody(WireModel):
    """With `force` the work is stopped at once, without waiting for its worker."""

    force: bool = False


class WorkListQuery(QueryModel):
    limit: Annotated[WholeNumber, Field(ge=1, le=1000)] = 100
    page: str | None = None
