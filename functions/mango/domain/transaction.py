"""Transactions as data: the closed set of writes and conditions that every change of the table is made of.

Services and the turn build these values; a `Store` adapter only translates them and holds no rule of its own
(docs/architecture.md, section 3). A transaction is applied whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_TRANSACTION_ITEMS = 100
"""DynamoDB: TransactWriteItems takes at most 100 items."""
MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
"""DynamoDB: at most 4 MB of items in one transaction."""
MAX_ITEM_BYTES = 400 * 1024
"""DynamoDB: an item is at most 400 KB, attribute names included."""

Scalar = str | int | bool | None
Value = Scalar | list["Value"] | dict[str, "Value"]
"""What an attribute may hold. No floats: money, time and tokens are integers. Deep JSON is stored as text."""
Item = dict[str, Value]
"""An item without its key. Attribute names are the product's own; `pk` and `sk` are added by the adapter."""


class Key(NamedTuple):
    """Primary key of an item: partition and sort key."""

    pk: str
    sk: str


@dataclass(frozen=True, slots=True)
class Equals:
    """The attribute exists and has this value."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Differs:
    """The attribute is missing or has another value."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Absent:
    """The attribute does not exist (a null value counts as existing)."""

    name: str


@dataclass(frozen=True, slots=True)
class Present:
    """The attribute exists."""

    name: str


@dataclass(frozen=True, slots=True)
class Above:
    """The attribute exists, is an integer and is greater than the bound."""

    name: str
    bound: int


@dataclass(frozen=True, slots=True)
class AtMost:
    """The attribute exists, is an integer and is not greater than the bound."""

    name: str
    bound: int


Condition = Equals | Differs | Absent | Present | Above | AtMost


@dataclass(frozen=True, slots=True)
class Put:
    """Writes a whole item.

    With `new` the item must not exist yet. Without it and without conditions the item is overwritten; conditions
    are checked against the item that is there (which must then satisfy them, so it must exist for most of them).
    """

    key: Key
    item: Mapping[str, Value]
    new: bool = True
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """Changes attributes of an item that must exist."""

    key: Key
    set: Mapping[str, Value] = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    """Added to the number that is there; a missing attribute counts as 0."""
    remove: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes an item. With `must_exist` a missing item refuses the transaction, else it is no error."""

    key: Key
    must_exist: bool = True
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Changes nothing; the item must exist (unless `exists` is False: must not exist) and satisfy the conditions."""

    key: Key
    conditions: tuple[Condition, ...] = ()
    exists: bool = True


Write = Put | Update | Delete | Check


@dataclass(frozen=True, slots=True)
class Transaction:
    """Writes that are applied together. A key occurs at most once."""

    writes: tuple[Write, ...]


class Refused(Exception):
    """A condition failed, so nothing was written. `indexes` names the writes whose conditions failed."""

    def __init__(self, indexes: tuple[int, ...]) -> None:
        super().__init__(f"conditions of writes {list(indexes)} failed")
        self.indexes = indexes


class Ambiguous(Exception):
    """The answer was lost: the transaction was applied, will be applied, or never is. Read back to find out."""


class TooLarge(Exception):
    """An item is over 400 KB or the transaction over 4 MB or 100 items; nothing was written."""


class StoreUnavailable(Exception):
    """The store did not take the request (throttled, not reachable, failing); certainly nothing was written."""
