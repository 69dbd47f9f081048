"""The key that an operator gives a deployment when it starts. There is one: giving another ends the one before."""

from __future__ import annotations

from mango.domain import keys
from mango.domain.errors import Unavailable
from mango.domain.transaction import Ambiguous, Delete, Equals, Item, Put, Refused, Transaction, Write
from mango.services.context import Context
from mango.services.creation import ATTEMPTS
from mango.services.keys import BOOTSTRAP, DEFAULT_WORKSPACE, digest, key_row, rows_labelled


def give_key(ctx: Context, token: str, workspace_id: str = DEFAULT_WORKSPACE) -> None:
    """Makes a token the given key of the workspace, and deletes the one that was it before.

    Deleted, not revoked: it may be given again. A key that was revoked stays that, and one that the workspace made
    otherwise outlives being given.

    Raises:
        Unavailable: every answer was lost, or others give keys at the same time.
    """
    for _ in range(ATTEMPTS):
        writes = _writes(ctx, token, workspace_id)
        if not writes:
            return
        try:
            ctx.store.commit(Transaction(tuple(writes)))
        except (Refused, Ambiguous):
            continue  # the next reading tells whether anything is left to do
        return
    raise Unavailable("the store's answers were lost; whether the key was given is unknown")


def _writes(ctx: Context, token: str, workspace_id: str) -> list[Write]:
    """What is left to do; each write is conditional on what this decided it from."""
    place, given = keys.given_key(workspace_id), digest(token)
    pointer = ctx.store.get(place)
    before = pointer["digest"] if pointer is not None else None
    known = ctx.store.get(keys.api_key(given)) is not None
    if before == given and known:
        return []
    writes: list[Write] = [] if known else [key_row(ctx, token, workspace_id, BOOTSTRAP)]
    if pointer is None:
        writes.append(Put(place, {"digest": given}))
        former = rows_labelled(ctx, workspace_id, BOOTSTRAP)  # of the time before there were pointers
    else:
        writes.append(Put(place, {"digest": given}, new=False, conditions=(Equals("digest", before),)))
        row = ctx.store.get(keys.api_key(str(before)))
        former = [] if row is None else [row]
    return writes + [_end(row) for row in former if row["digest"] != given and _ends(row)]


def _ends(row: Item) -> bool:
    return row["label"] == BOOTSTRAP and row["revoked_at"] is None


def _end(row: Item) -> Delete:
    return Delete(keys.api_key(str(row["digest"])), conditions=(Equals("revoked_at", None),))
