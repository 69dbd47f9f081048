"""What a round is given."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from mango.ports import Json, ModelClient
from mango.services.context import Context
from mango.turn.transcript import TranscriptCache


class SnapshotCache:
    """The agents of this process's latest sessions; sound because a session's snapshot is immutable."""

    def __init__(self, sessions: int = 256) -> None:
        self._sessions = sessions
        self._kept: OrderedDict[str, Json] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, session_id: str, load: Callable[[], Json]) -> Json:
        with self._lock:
            kept = self._kept.get(session_id)
        if kept is not None:
            return kept
        snapshot = load()
        with self._lock:
            self._kept[session_id] = snapshot
            while len(self._kept) > self._sessions:
                self._kept.popitem(last=False)
        return snapshot


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The services' context, the model, and what this process remembers of sessions."""

    services: Context
    model: ModelClient
    transcripts: TranscriptCache = field(default_factory=TranscriptCache)
    snapshots: SnapshotCache = field(default_factory=SnapshotCache)
