"""Committing what is new, and changing one item by reading it first."""

from __future__ import annotations

from collections.abc import Callable

from mango.domain.errors import RetryableConflict, Unavailable
from mango.domain.transaction import Ambiguous, Item, Key, Refused, Transaction, Update
from mango.services.context import Context

ATTEMPTS = 5


def commit_new(ctx: Context, transaction: Transaction) -> None:
    """Commits the creation of items under a fresh id.

    After a lost answer the same transaction is tried again: a refusal then says that the earlier try arrived, since
    nobody else can have taken the id.

    Raises:
        Unavailable: every answer was lost.
    """
    lost = False
    for _ in range(ATTEMPTS):
        try:
            ctx.store.commit(transaction)
        except Ambiguous:
            lost = True
        except Refused:
            if not lost:
                raise
            return
        else:
            return
    raise Unavailable("the store's answers were lost; whether it was created is unknown")


def change(ctx: Context, key: Key, read: Callable[[], Item], update: Callable[[Item], Update | None]) -> Item:
    """Changes an item conditional on what was read, again on a fresh reading when somebody else was faster.

    `read` raises when the item is missing; `update` answers None when nothing is left to do, which also ends a
    change whose answer was lost.
    """
    for _ in range(ATTEMPTS):
        item = read()
        wanted = update(item)
        if wanted is None:
            return item
        try:
            ctx.store.commit(Transaction((wanted,)))
        except (Refused, Ambiguous):
            continue
        return {**item, **wanted.set}
    raise RetryableConflict(f"{key.pk} is being changed by others at the same time; try again")
