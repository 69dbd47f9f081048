"""Translates writes and conditions into DynamoDB's requests and expressions. Attribute names are always aliased."""

from __future__ import annotations

from typing import Any

from mango.aws.serial import Attribute, encode, encode_item, encode_key
from mango.domain.transaction import (
    Above,
    Absent,
    AtMost,
    Check,
    Condition,
    Delete,
    Differs,
    Equals,
    Present,
    Put,
    Update,
    Value,
    Write,
)

_EXISTS = "attribute_exists(pk)"
_MISSING = "attribute_not_exists(pk)"


class Expressions:
    """Collects the names and values of one request."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self._values: dict[str, Attribute] = {}

    def name(self, name: str) -> str:
        """The alias of an attribute name."""
        return self._aliases.setdefault(name, f"#{len(self._aliases)}")

    def value(self, value: Value) -> str:
        """A placeholder for a value."""
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = encode(value)
        return placeholder

    def condition(self, condition: Condition) -> str:
        """One condition."""
        name = self.name(condition.name)
        match condition:
            case Equals():
                return f"{name} = {self.value(condition.value)}"
            case Differs():
                return f"(attribute_not_exists({name}) OR {name} <> {self.value(condition.value)})"
            case Absent():
                return f"attribute_not_exists({name})"
            case Present():
                return f"attribute_exists({name})"
            case Above():
                return f"{name} > {self.value(condition.bound)}"
            case AtMost():
                return f"{name} <= {self.value(condition.bound)}"

    def all_of(self, conditions: tuple[Condition, ...], existence: str | None = None) -> str:
        """All the conditions, the one on the item's existence first; empty if there are none."""
        parts = [existence] if existence else []
        return " AND ".join([*parts, *(self.condition(condition) for condition in conditions)])

    def update(self, update: Update) -> str:
        """An update's expression."""
        clauses = []
        if update.set:
            changes = (f"{self.name(name)} = {self.value(value)}" for name, value in update.set.items())
            clauses.append(f"SET {', '.join(changes)}")
        if update.add:
            changes = (f"{self.name(name)} {self.value(amount)}" for name, amount in update.add.items())
            clauses.append(f"ADD {', '.join(changes)}")
        if update.remove:
            clauses.append(f"REMOVE {', '.join(self.name(name) for name in update.remove)}")
        return " ".join(clauses)

    def into(self, request: dict[str, Any], condition: str) -> dict[str, Any]:
        """Adds the condition, and the names and values collected, to the request."""
        if condition:
            request["ConditionExpression"] = condition
        if self._aliases:
            request["ExpressionAttributeNames"] = {alias: name for name, alias in self._aliases.items()}
        if self._values:
            request["ExpressionAttributeValues"] = self._values
        return request


def translate(table: str, write: Write) -> tuple[str, dict[str, Any]]:
    """The name of the write's operation in a transaction, and its parameters."""
    match write:
        case Put():
            return "Put", _put(table, write)
        case Update():
            return "Update", _update(table, write)
        case Delete():
            return "Delete", _delete(table, write)
        case Check():
            return "ConditionCheck", _check(table, write)


def _put(table: str, put: Put) -> dict[str, Any]:
    expressions = Expressions()
    request = {"TableName": table, "Item": encode_item(put.key, put.item)}
    return expressions.into(request, expressions.all_of(put.conditions, _MISSING if put.new else None))


def _update(table: str, update: Update) -> dict[str, Any]:
    expressions = Expressions()
    request = {
        "TableName": table,
        "Key": encode_key(update.key),
        "UpdateExpression": expressions.update(update),
    }
    return expressions.into(request, expressions.all_of(update.conditions, _EXISTS))


def _delete(table: str, delete: Delete) -> dict[str, Any]:
    expressions = Expressions()
    condition = expressions.all_of(delete.conditions, _EXISTS if delete.must_exist else None)
    if condition and not delete.must_exist:
        # A missing item is no error, whatever the conditions say. AND binds tighter than OR, and DynamoDB refuses
        # parentheses that are not needed.
        condition = f"{_MISSING} OR {condition}"
    return expressions.into({"TableName": table, "Key": encode_key(delete.key)}, condition)


def _check(table: str, check: Check) -> dict[str, Any]:
    expressions = Expressions()
    condition = expressions.all_of(check.conditions, _EXISTS if check.exists else _MISSING)
    return expressions.into({"TableName": table, "Key": encode_key(check.key)}, condition)
