"""What this process last read or wrote of its sessions, so that the next step of a busy one needs no read.

Sound because nothing is believed: every transaction is conditional on each field its decision read, so one that was
decided on an old reading is refused and decided again on a fresh one; and what a reading forbids (a 4xx, "nothing to
do") is looked up again before it is said. Worth it only where one process does both admission and rounds (the
embedded profile); elsewhere readings would mostly be old, so by default nothing is kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from mango.domain import keys
from mango.domain.calls import Barrier
from mango.domain.thread import Thread
from mango.domain.transaction import Check, Equals, Item, Update


@dataclass(frozen=True, slots=True)
class Pointer:
    """`S#<session>` / `WORK`: the session's live work item, or its last one. `ver` moves with `live`."""

    session_id: str
    work_id: str = ""
    ver: int = 0
    live: bool = False

    def item(self) -> Item:
        return {"work_id": self.work_id, "ver": self.ver, "live": self.live}

    def unchanged(self) -> Check:
        return Check(keys.session_work(self.session_id), (Equals("ver", self.ver),))

    def moved(self, work_id: str, live: bool) -> Update:
        changes: Item = {"work_id": work_id, "ver": self.ver + 1, "live": live}
        return Update(keys.session_work(self.session_id), set=changes, conditions=(Equals("ver", self.ver),))


def read_pointer(session_id: str, item: Item) -> Pointer:
    ver = item["ver"]
    assert isinstance(ver, int)
    return Pointer(session_id, str(item["work_id"]), ver, item["live"] is True)


@dataclass(frozen=True, slots=True)
class Reading:
    """A session's items as they were at one moment.

    Attributes:
        meta: None where only a round read it.
        barrier: None when there is none; a round does not look.
        pointer: None where it was not read.
        fresh: whether it was read from the table just now.
    """

    meta: Item | None
    thread: Thread
    barrier: Barrier | None
    pointer: Pointer | None = None
    fresh: bool = True


class Recent:
    """The latest readings, by session. Taking one removes it, so that a refusal leads to a real read."""

    def __init__(self, sessions: int = 0) -> None:
        self._sessions = sessions
        self._kept: OrderedDict[str, Reading] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, session_id: str) -> Reading | None:
        with self._lock:
            return self._kept.pop(session_id, None)

    def put(self, meta: Item | None, thread: Thread, barrier: Barrier | None, pointer: Pointer | None) -> None:
        """Keeps what a commit of this process left behind."""
        if not self._sessions:
            return
        with self._lock:
            self._kept[thread.session_id] = Reading(meta, thread, barrier, pointer, fresh=False)
            while len(self._kept) > self._sessions:
                self._kept.popitem(last=False)
