"""Finding a session for somebody: what is missing, foreign or deleted looks the same."""

from __future__ import annotations

from mango.domain import keys
from mango.domain.calls import read_barrier
from mango.domain.errors import Forbidden, InvalidRequest, NotFound
from mango.domain.principal import Credential, Principal
from mango.domain.thread import Status, Thread, read_thread
from mango.domain.transaction import Item, Key
from mango.services.context import Context
from mango.services.readings import Reading


def primary_thread_id(session_id: str) -> str:
    """The primary thread is named after its session, so that no read is needed to find it."""
    return "sthr_" + session_id.removeprefix("sesn_")


def missing(session_id: str) -> NotFound:
    return NotFound(f"session {session_id!r} was not found")


def check_session_id(session_id: str) -> None:
    """Refuses what cannot be a session id before it becomes part of a key."""
    if not session_id.startswith("sesn_"):
        raise missing(session_id)


def owned(meta: Item | None, principal: Principal, session_id: str) -> Item:
    """The session's META item, if this principal may see it.

    Raises:
        NotFound: there is no such session in the principal's workspace (or environment).
        Forbidden: a work token names another session of its own environment or another one altogether.
    """
    if principal.kind is Credential.WORK and principal.session_id != session_id:
        raise Forbidden("this credential is for another session")
    if meta is None or meta["workspace_id"] != principal.workspace_id or meta.get("deleted_at"):
        raise missing(session_id)
    if principal.kind is Credential.ENVIRONMENT and meta["environment_id"] != principal.environment_id:
        raise missing(session_id)
    return meta


def check_open(thread: Thread) -> None:
    """Refuses input to a session that takes none any more."""
    if thread.closed == "deleting":
        raise missing(thread.session_id)
    if thread.closed:
        raise InvalidRequest(f"session {thread.session_id!r} is archived and takes no more events")
    if thread.status is Status.TERMINATED:
        raise InvalidRequest(f"session {thread.session_id!r} is terminated and takes no more events")


def meta_key(session_id: str) -> Key:
    check_session_id(session_id)
    return keys.meta(session_id)


def read_session(ctx: Context, principal: Principal, session_id: str) -> Reading:
    """META, primary thread and barrier in one read.

    Raises:
        NotFound, Forbidden: as `owned` says.
    """
    thread_id = primary_thread_id(session_id)
    meta, thread, barrier = ctx.store.get_many(
        [meta_key(session_id), keys.thread(session_id, thread_id), keys.barrier(session_id, thread_id)]
    )
    found = owned(meta, principal, session_id)
    if thread is None:
        raise missing(session_id)
    return Reading(found, read_thread(thread), read_barrier(barrier) if barrier else None)


def recent_session(ctx: Context, principal: Principal, session_id: str) -> Reading:
    """What this process last saw of the session, if it kept anything; else a fresh reading."""
    known = ctx.recent.take(session_id)
    if known is None or known.meta is None:
        return read_session(ctx, principal, session_id)
    owned(known.meta, principal, session_id)
    return known
