"""Copies, equality and conditions of stored values, as DynamoDB sees them."""

from __future__ import annotations

from collections.abc import Mapping

from mango.domain.rules import check_number
from mango.domain.transaction import (
    Above,
    Absent,
    AtMost,
    Check,
    Condition,
    Delete,
    Differs,
    Equals,
    Item,
    Present,
    Put,
    Update,
    Value,
    Write,
)


def copy_value(value: Value) -> Value:
    """A copy that shares nothing that can change."""
    if isinstance(value, list):
        return [copy_value(element) for element in value]
    if isinstance(value, dict):
        return {name: copy_value(member) for name, member in value.items()}
    return value


def copy_item(item: Mapping[str, Value]) -> Item:
    """A deep copy of an item."""
    return {name: copy_value(value) for name, value in item.items()}


def same(left: Value, right: Value) -> bool:
    """Equality that, unlike Python's, keeps `True` and `1` apart, also inside lists and maps."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    return left == right


def holds(condition: Condition, item: Item | None) -> bool:
    """Whether the condition is met by the item; a missing item has no attributes."""
    attributes: Item = {} if item is None else item
    name = condition.name
    match condition:
        case Equals():
            return name in attributes and same(attributes[name], condition.value)
        case Differs():
            return name not in attributes or not same(attributes[name], condition.value)
        case Absent():
            return name not in attributes
        case Present():
            return name in attributes
        case Above():
            number = _number(attributes.get(name))
            return number is not None and number > condition.bound
        case AtMost():
            number = _number(attributes.get(name))
            return number is not None and number <= condition.bound


def permits(write: Write, item: Item | None) -> bool:
    """Whether the item that is there allows the write."""
    match write:
        case Put():
            allowed = item is None or not write.new
        case Update():
            allowed = item is not None
        case Delete():
            if item is None:
                return not write.must_exist
            allowed = True
        case Check():
            allowed = (item is not None) == write.exists
    return allowed and all(holds(condition, item) for condition in write.conditions)


def updated(item: Item, update: Update) -> Item:
    """The item after the update, without its size checked."""
    result = {**item, **copy_item(update.set)}
    for name, amount in update.add.items():
        number = _number(item.get(name, 0))
        if number is None:
            raise ValueError(f"{name} is not a number, so nothing can be added to it")
        result[name] = check_number(number + amount)
    for name in update.remove:
        result.pop(name, None)
    return result


def _number(value: Value) -> int | None:
    return value if type(value) is int else None
