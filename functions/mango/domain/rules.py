"""What DynamoDB demands of keys, values and transactions, checked before anything is sent.

Pure: the in-memory twin enforces the same rules. Mistakes of the program raise `ValueError`, sizes `TooLarge`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mango.domain.transaction import (
    MAX_ITEM_BYTES,
    MAX_TRANSACTION_BYTES,
    MAX_TRANSACTION_ITEMS,
    Above,
    AtMost,
    Condition,
    Differs,
    Equals,
    Key,
    Put,
    TooLarge,
    Transaction,
    Update,
    Value,
    Write,
)

INDEXES: dict[str, tuple[str, str]] = {"by_list": ("list_of", "listed_at"), "due": ("due_shard", "due")}
"""The table's indexes: name, partition attribute and sort attribute. Sparse, keys only."""
INT_BOUND = 10**38
"""DynamoDB keeps 38 digits."""

_MAX_PARTITION_BYTES = 2048
_MAX_SORT_BYTES = 1024
_MAX_DEPTH = 32
_INDEX_ATTRIBUTES = {
    name: bound
    for attributes in INDEXES.values()
    for name, bound in zip(attributes, (_MAX_PARTITION_BYTES, _MAX_SORT_BYTES), strict=True)
}


def check_transaction(transaction: Transaction) -> None:
    """Raises unless DynamoDB would look at the conditions; an update's result is not known here."""
    writes = transaction.writes
    if not writes:
        raise ValueError("a transaction needs at least one write")
    if len(writes) > MAX_TRANSACTION_ITEMS:
        raise TooLarge(f"{len(writes)} items in one transaction")
    if len({write.key for write in writes}) != len(writes):
        raise ValueError("a key occurs twice in a transaction")
    check_total(_write_size(write) for write in writes)


def check_total(sizes: Iterable[int]) -> None:
    """Raises `TooLarge` when items of these sizes do not fit into one transaction."""
    total = sum(sizes)
    if total > MAX_TRANSACTION_BYTES:
        raise TooLarge(f"a transaction of {total} bytes")


def check_key(key: Key) -> None:
    """Raises `ValueError` for a key that no item can have."""
    _check_key_text(key.pk, _MAX_PARTITION_BYTES)
    _check_key_text(key.sk, _MAX_SORT_BYTES)


def check_number(value: int) -> int:
    """The number, if DynamoDB can keep it exactly."""
    if not -INT_BOUND < value < INT_BOUND:
        raise ValueError("an integer of more than 38 digits")
    return value


def item_size(key: Key, item: Mapping[str, Value]) -> int:
    """Bytes that DynamoDB counts for an item; raises when it could not be stored."""
    size = 4 + text_size(key.pk) + text_size(key.sk) + _attributes_size(item)
    if size > MAX_ITEM_BYTES:
        raise TooLarge(f"an item of {size} bytes")
    return size


def text_size(text: str) -> int:
    """Bytes of the text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def _check_key_text(text: str, bound: int) -> None:
    if not isinstance(text, str) or not text:
        raise ValueError("a key must be a text that is not empty")
    if text_size(text) > bound:
        raise ValueError(f"a key of more than {bound} bytes")


def _write_size(write: Write) -> int:
    check_key(write.key)
    _check_conditions(write.conditions)
    if isinstance(write, Put):
        return item_size(write.key, write.item)
    if isinstance(write, Update):
        return _update_size(write)
    return 0


def _update_size(update: Update) -> int:
    names = [*update.set, *update.add, *update.remove]
    if not names:
        raise ValueError("an update that changes nothing; use Check")
    if len(set(names)) != len(names):
        raise ValueError("an update names an attribute twice")
    for name in (*update.add, *update.remove):
        _check_name(name)
    for name, amount in update.add.items():
        if name in _INDEX_ATTRIBUTES:
            raise ValueError(f"{name} is a text and takes no addition")
        if type(amount) is not int:
            raise ValueError("only integers can be added")
        check_number(amount)
    return item_size(update.key, update.set)


def _check_conditions(conditions: tuple[Condition, ...]) -> None:
    for condition in conditions:
        _check_name(condition.name)
        if isinstance(condition, Equals | Differs):
            _value_size(condition.value, 0)
        elif isinstance(condition, Above | AtMost):
            if type(condition.bound) is not int:
                raise ValueError("a bound must be an integer")
            check_number(condition.bound)


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name or name in ("pk", "sk"):
        raise ValueError(f"{name!r} cannot be the name of an attribute")


def _attributes_size(item: Mapping[str, Value]) -> int:
    size = 0
    for name, value in item.items():
        _check_name(name)
        if name in _INDEX_ATTRIBUTES:
            # DynamoDB refuses any write whose index key has another type or is empty.
            _check_key_text(value if isinstance(value, str) else "", _INDEX_ATTRIBUTES[name])
        size += text_size(name) + _value_size(value, 0)
    return size


def _value_size(value: Value, depth: int) -> int:
    if isinstance(value, str):
        return text_size(value)
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return len(str(abs(check_number(value)))) // 2 + 2
    if depth >= _MAX_DEPTH:
        raise ValueError(f"nested more than {_MAX_DEPTH} deep")
    if isinstance(value, list):
        return 3 + sum(1 + _value_size(element, depth + 1) for element in value)
    if isinstance(value, dict):
        return 3 + sum(1 + _member_size(name) + _value_size(member, depth + 1) for name, member in value.items())
    raise ValueError(f"a {type(value).__name__} cannot be stored")


def _member_size(name: str) -> int:
    if not isinstance(name, str) or not name:
        raise ValueError(f"{name!r} cannot be the name of a member")
    return text_size(name)
