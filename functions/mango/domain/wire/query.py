"""Query strings: repeated names become lists, texts become numbers, booleans and points in time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import UnionType
from typing import Annotated, Any, Self, Union, get_args, get_origin

from pydantic import BeforeValidator, ConfigDict

from mango.domain.errors import InvalidRequest
from mango.domain.times import micros
from mango.domain.wire.base import WireModel
from mango.domain.wire.errors import fault

IGNORED = frozenset({"beta"})
"""Older clients put `?beta=true` on every URL."""

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)?)?", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_LAST = 253402300799_999999
"""The last microsecond that RFC 3339 can spell."""


def _whole(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not _WHOLE.fullmatch(value):
        raise fault("must be a whole number")
    return int(value)


def _boolean(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in ("true", "false"):
        raise fault("must be true or false")
    return value == "true"


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not _MOMENT.fullmatch(value):
        raise fault("must be an RFC 3339 date and time such as 2026-11-29T16:41:49Z")
    try:
        moment = datetime.fromisoformat(value.upper())
    except ValueError as error:
        raise fault(f"is not a point in time: {error}") from None
    return min(max(micros(moment), 0), _LAST)


WholeNumber = Annotated[int, BeforeValidator(_whole)]
Flag = Annotated[bool, BeforeValidator(_boolean)]
Moment = Annotated[int, BeforeValidator(_moment)]
"""Microseconds since the epoch."""


class QueryModel(WireModel):
    """The query string of one route. Field aliases are the names on the wire, without the `[]` of lists."""

    model_config = ConfigDict(populate_by_name=True)

    @classmethod
    def from_query(cls, parameters: Mapping[str, Sequence[str]]) -> Self:
        """Reads decoded parameters, each with all its values; an unknown name is refused."""
        lists = {name for name, field in cls.model_fields.items() if _is_list(field.annotation)}
        values: dict[str, Any] = {}
        for name, given in parameters.items():
            if name in IGNORED:
                continue
            if name in cls.model_fields and cls.model_fields[name].alias is not None:
                raise InvalidRequest(f"is spelt `{cls.model_fields[name].alias}`", path=name)
            plain = name.removesuffix("[]")
            if plain in lists:
                values.setdefault(plain, []).extend(given)
            elif len(given) > 1:
                raise InvalidRequest("is given more than once", path=name)
            else:
                values[name] = given[0]
        return cls.parse(values)


def _is_list(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return any(_is_list(part) for part in get_args(annotation))
    return get_origin(annotation) is list
