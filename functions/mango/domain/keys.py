"""Where every item lives in the table (docs/architecture.md, section 4). The only place that spells keys."""

from __future__ import annotations

import zlib

from mango.domain.times import rfc3339
from mango.domain.transaction import Key

DUE_SHARDS = 4
"""Partitions of the `due` index, so that one hot partition never bounds the whole deployment."""


def _session(session_id: str) -> str:
    return f"S#{session_id}"


def session_partition(session_id: str) -> str:
    return _session(session_id)


def meta(session_id: str) -> Key:
    return Key(_session(session_id), "META")


def snapshot(session_id: str) -> Key:
    return Key(_session(session_id), "AGENT")


def thread(session_id: str, thread_id: str) -> Key:
    return Key(_session(session_id), f"TH#{thread_id}")


def barrier(session_id: str, thread_id: str) -> Key:
    return Key(_session(session_id), f"BA#{thread_id}")


LEDGER_MARK = "EV#"
"""How the sort keys of ledger items begin."""


def ledger_prefix(thread_id: str) -> str:
    return f"{LEDGER_MARK}{thread_id}#"


def ledger(session_id: str, thread_id: str, seq: int) -> Key:
    return Key(_session(session_id), f"{ledger_prefix(thread_id)}{seq:012d}")


def ledger_place(key: Key) -> tuple[str, str, int]:
    """Session, thread and seq of a ledger item's key."""
    _, thread_id, seq = key.sk.split("#")
    return key.pk.removeprefix("S#"), thread_id, int(seq)


def inbox_prefix(thread_id: str) -> str:
    return f"IN#{thread_id}#"


def inbox(session_id: str, thread_id: str, number: int) -> Key:
    return Key(_session(session_id), f"{inbox_prefix(thread_id)}{number:012d}")


def transcript_prefix(thread_id: str) -> str:
    return f"TX#{thread_id}#"


def transcript(session_id: str, thread_id: str, seq: int) -> Key:
    return Key(_session(session_id), f"{transcript_prefix(thread_id)}{seq:012d}")


def session_work(session_id: str) -> Key:
    """The pointer that allows one live work item a session."""
    return Key(_session(session_id), "WORK")


def environment(environment_id: str) -> Key:
    return Key(f"ENV#{environment_id}", "META")


def work(environment_id: str, work_id: str) -> Key:
    return Key(f"ENV#{environment_id}", f"W#{work_id}")


QUEUE_PREFIX = "Q#"


def queued_work(environment_id: str, created_at: int, work_id: str) -> Key:
    """A row for each work item that a poller may find: from queueing until acknowledgement, oldest first."""
    return Key(f"ENV#{environment_id}", f"{QUEUE_PREFIX}{rfc3339(created_at)}#{work_id}")


POLLER_PREFIX = "POLL#"


def poller(environment_id: str, worker_id: str) -> Key:
    return Key(f"ENV#{environment_id}", f"{POLLER_PREFIX}{worker_id}")


def agent(agent_id: str) -> Key:
    return Key(f"AGENT#{agent_id}", "META")


def agent_version(agent_id: str, version: int) -> Key:
    return Key(f"AGENT#{agent_id}", f"V#{version:08d}")


def file(file_id: str) -> Key:
    return Key(f"FILE#{file_id}", "META")


def api_key(digest: str) -> Key:
    return Key(f"KEY#{digest}", "META")


def given_key(workspace_id: str) -> Key:
    """The pointer to the key that the operator gave at start."""
    return Key(f"GIVEN#{workspace_id}", "KEY")


def listing(workspace_id: str, kind: str) -> str:
    """Partition of the `by_list` index: the resources of one kind in one workspace, newest last."""
    return f"{workspace_id}#{kind}"


def listed(workspace_id: str, kind: str, created_at: int, resource_id: str) -> dict[str, str]:
    """Attributes that put an item into `by_list`."""
    return {"list_of": listing(workspace_id, kind), "listed_at": f"{rfc3339(created_at)}#{resource_id}"}


def due_shard(owner_id: str) -> str:
    """Which partition of the `due` index a session's or work item's debts are in."""
    return f"due#{zlib.crc32(owner_id.encode()) % DUE_SHARDS}"


def due(owner_id: str, at: int) -> dict[str, str]:
    """Attributes that put an item into the `due` index at a time."""
    return {"due_shard": due_shard(owner_id), "due": rfc3339(at)}


DUE_ATTRIBUTES = ("due_shard", "due")
