"""What thread and work items share: dataclasses whose fields are the item's attributes, with an entry in `due`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from enum import StrEnum
from typing import Any, Self

from mango.domain import keys
from mango.domain.transaction import Absent, Condition, Equals, Item, Value


class Record(ABC):
    """Base of a frozen dataclass of plain values; its `due` attribute is absent when it is ""."""

    __slots__ = ()

    due: str

    @property
    @abstractmethod
    def owner(self) -> str:
        """Id that decides the shard of the `due` index."""

    def item(self) -> Item:
        item = {name: _plain(getattr(self, name)) for name in _names(self)}
        if self.due:
            item["due_shard"] = keys.due_shard(self.owner)
        else:
            del item["due"]
        return item

    def as_read(self, *names: str) -> tuple[Condition, ...]:
        """Conditions that these fields still have the values of this reading."""
        return tuple(
            Absent(name) if name == "due" and not self.due else Equals(name, _plain(getattr(self, name)))
            for name in names
        )

    def changes_to(self, after: Self) -> dict[str, Value]:
        """Attributes to set so that the item becomes `after`."""
        changed = {
            name: _plain(getattr(after, name)) for name in _names(self) if getattr(after, name) != getattr(self, name)
        }
        if changed.get("due") == "":
            del changed["due"]
        elif "due" in changed:
            changed["due_shard"] = keys.due_shard(after.owner)
        return changed

    def removals_to(self, after: Self) -> tuple[str, ...]:
        """Attributes to remove so that the item becomes `after`."""
        return keys.DUE_ATTRIBUTES if self.due and not after.due else ()


def values_of(record: type[Record], item: Item) -> dict[str, Any]:
    """The item's attributes that are fields of the record; what a newer version added is left out."""
    return {name: item[name] for name in _names(record) if name in item}


def _names(record: Record | type[Record]) -> list[str]:
    return [field.name for field in fields(record)]  # type: ignore[arg-type]  # every record is a dataclass


def _plain(value: Value) -> Value:
    return str(value) if isinstance(value, StrEnum) else value
