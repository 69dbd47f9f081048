"""The floor of a tool round trip: three conditional transactions of its shape, on the same store, and nothing else."""

from __future__ import annotations

import time
from pathlib import Path

from mango.aws.store import DynamoStore
from mango.domain import keys
from mango.domain.ledger import dump_json
from mango.domain.transaction import Check, Delete, Equals, Item, Key, Put, Transaction, Update
from mango_local.profile import Profile

PAD = "x" * 24
"""Ids are about so long."""


class Floor:
    """Commits what admission, first and final commit of a round write: the same items, conditions and sizes."""

    def __init__(self, store: DynamoStore, session_id: str) -> None:
        self._store = store
        self._session = session_id
        self._thread = "sthr_" + PAD
        self._seq = 0
        thread: Item = dict.fromkeys(("head", "wake", "gen", "bver", "lease", "retry_at", "tail", "taken"), 0)
        thread |= {"status": "idle", "holder": "", "hold": False, "owes": False, "flag": "[]", "gate": "open"}
        self._put(self._thread_key, thread)
        self._put(keys.meta(session_id), {"status": "idle", "updated_at": 0})
        self._put(self._barrier_key, {"calls": ""})
        self._put(keys.session_work(session_id), {"ver": 0, "live": True, "work_id": "work_" + PAD})

    @property
    def _thread_key(self) -> Key:
        return keys.thread(self._session, self._thread)

    @property
    def _barrier_key(self) -> Key:
        return keys.barrier(self._session, self._thread)

    def _put(self, key: Key, item: Item) -> None:
        self._store.commit(Transaction((Put(key, item),)))

    def round_trip(self) -> float:
        """Seconds that one takes."""
        began = time.perf_counter()
        status = Update(keys.meta(self._session), set={"status": "running", "updated_at": self._seq})
        calls = dump_json([{"id": "sevt_" + PAD, "kind": "worker", "approved": True, "answered": True}])
        self._commit(["user.tool_result", "session.status_running", "session.thread_status_running"], 9,
                     status, Update(self._barrier_key, set={"calls": calls}))  # fmt: skip
        self._commit(["span.model_request_start"], 12, Delete(self._barrier_key, must_exist=False))
        self._commit(
            ["agent.tool_use", "span.model_request_end", "session.thread_status_idle", "session.usage",
             "session.status_idle"],
            3,
            Put(keys.transcript(self._session, self._thread, self._seq), {"answer": calls + calls}),
            Put(self._barrier_key, {"calls": calls}, new=False),
            Check(keys.session_work(self._session), (Equals("ver", 0),)),
            Update(keys.meta(self._session), set={"status": "idle", "updated_at": self._seq}),
        )  # fmt: skip
        return time.perf_counter() - began

    def _commit(self, types: list[str], conditions: int, *more: Put | Update | Delete | Check) -> None:
        before: Item = {"head": self._seq, "wake": 0, "gen": 0, "bver": 0, "holder": "", "retry_at": 0, "tail": 0,
                  "taken": 0, "hold": False, "owes": False, "flag": "[]", "gate": "open"}  # fmt: skip
        names = list(before)[:conditions]
        self._seq += 1
        thread = Update(
            self._thread_key,
            set={"head": self._seq, "lease": self._seq, "due": "2026-11-29T17:00:00.000000Z", "due_shard": "due#0"},
            conditions=tuple(Equals(name, before[name]) for name in names),
        )
        events = [{"id": "sevt_" + PAD, "type": kind, "session_thread_id": self._thread} for kind in types]
        ledger: Item = {"seq": self._seq, "commit": "cmt_" + PAD, "at": 0, "events": dump_json(events), "gen": 0}
        put = Put(keys.ledger(self._session, self._thread, self._seq), ledger)
        self._store.commit(Transaction((thread, put, *more)))


def store_of(data_dir: Path) -> DynamoStore:
    """A store client of our own on the endpoint of a running `mango up`."""
    endpoint = (data_dir / "endpoint").read_text().strip()
    return Profile(endpoint).store
