"""Translates the bounds of queries into key conditions, of which DynamoDB takes only one on the sort key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mango.aws.serial import Attribute
from mango.domain.rules import INDEXES

_LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)


class Span(NamedTuple):
    """Sort keys from `low` (included; empty is no bound) up to `excluded` (None is no bound)."""

    low: str
    excluded: str | None


def checked(limit: int | None) -> int | None:
    """The limit, if it is one."""
    if limit is not None and limit < 1:
        raise ValueError("a limit must be at least 1")
    return limit


def span(prefix: str, after: str | None, before: str | None) -> Span | None:
    """The bounds taken together; None when nothing lies between them."""
    # The text that follows `after` at once in byte order is `after` and a NUL.
    low = prefix if after is None else max(prefix, f"{after}\0")
    ends = [end for end in (successor(prefix), before) if end is not None]
    high = min(ends) if ends else None
    return None if high is not None and low >= high else Span(low, high)


def successor(prefix: str) -> str | None:
    """The first text after all that start with the prefix; None when there is none."""
    while prefix:
        prefix, last = prefix[:-1], ord(prefix[-1])
        if last < _LAST:
            following = last + 1
            return prefix + chr(_SURROGATES[1] + 1 if following == _SURROGATES[0] else following)
    return None


def partition_request(table: str, pk: str, bounds: Span, limit: int | None, descending: bool) -> dict[str, Any]:
    """A query of the table. BETWEEN includes its upper end, so it asks for one item more, to be dropped."""
    condition, values = "pk = :p", {":p": {"S": pk}}
    if bounds.low and bounds.excluded is not None:
        condition += " AND sk BETWEEN :l AND :e"
        limit = None if limit is None else limit + 1
    elif bounds.low:
        condition += " AND sk >= :l"
    elif bounds.excluded is not None:
        condition += " AND sk < :e"
    if bounds.low:
        values[":l"] = {"S": bounds.low}
    if bounds.excluded is not None:
        values[":e"] = {"S": bounds.excluded}
    request: dict[str, Any] = {
        "TableName": table,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ConsistentRead": True,
        "ScanIndexForward": not descending,
    }
    if limit is not None:
        request["Limit"] = limit
    return request


def index_request(table: str, index: str, partition: str, at_most: str | None, above: str | None) -> dict[str, Any]:
    """A query of an index; an index is never consistent."""
    partition_name, sort_name = INDEXES[index]
    condition, values = "#p = :p", {":p": {"S": partition}}
    names = {"#p": partition_name}
    if at_most is not None and above is not None:
        condition += " AND #s BETWEEN :a AND :m"
        values |= {":a": {"S": f"{above}\0"}, ":m": {"S": at_most}}
    elif at_most is not None:
        condition += " AND #s <= :m"
        values[":m"] = {"S": at_most}
    elif above is not None:
        condition += " AND #s > :a"
        values[":a"] = {"S": above}
    if at_most is not None or above is not None:
        names["#s"] = sort_name
    return {
        "TableName": table,
        "IndexName": index,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def write_start(key: Mapping[str, Attribute]) -> str:
    """A continuation key as text."""
    return json.dumps({name: attribute["S"] for name, attribute in key.items()})


def read_start(text: str) -> dict[str, Attribute]:
    """The inverse of `write_start`."""
    return {name: {"S": value} for name, value in json.loads(text).items()}
