"""What all inputs share: closed models with strict JSON types, valid text, metadata, unions chosen by `type`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    ValidationError,
    model_validator,
)

from mango.domain.errors import InvalidRequest, Unsupported
from mango.domain.wire.errors import UNION, fault, invalid, kind_of, one_of, spelt

Json = dict[str, Any]
Path = tuple[str | int, ...]

Entry = TypeVar("Entry")
Many = Annotated[list[Entry], Field(fail_fast=True)]
"""A list that stops at its first fault: only one is answered, and there may be as many as entries."""

MAX_METADATA = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512


class WireModel(BaseModel):
    """A closed object: unknown fields are refused and no value is coerced into another JSON type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Checks the form of decoded JSON, and that this deployment supports what it asks for.

        Texts must be valid Unicode already: see `refuse_surrogates`.

        Raises:
            InvalidRequest: the form is wrong.
            Unsupported: the form is right, the feature is missing (decision 40).
        """
        try:
            model = cls.model_validate(value)
        except ValidationError as error:
            raise invalid(error) from None
        model.check_supported("")
        return model

    @model_validator(mode="before")
    @classmethod
    def _no_more_than_are_known(cls, value: Any) -> Any:
        """More keys than fields: one is unknown. Found here, it is one fault, and not one for each unknown key."""
        if isinstance(value, dict) and len(value) > len(cls.model_fields):
            known = {field.alias or name for name, field in cls.model_fields.items()}
            for name in value:
                if name not in known:
                    raise fault("is not a known field; remove it", name)
        return value

    def check_supported(self, at: str) -> None:
        """Raises `Unsupported` for what is well-formed but not built; `at` is the path of this object."""

    def to_dict(self) -> Json:
        """As plain JSON; fields that were omitted stay omitted, explicit nulls stay null."""
        return self.model_dump(exclude_unset=True, by_alias=True)


def below(at: str, *parts: str | int) -> str:
    """The path of a part of the object at `at`."""
    return spelt([*([at] if at else []), *parts])


def unsupported(at: str, what: str) -> Unsupported:
    """The answer to something well-formed that is not built yet."""
    return Unsupported(f"{what} is not supported yet", path=at)


def place_of(value: Any, bad: Callable[[Any], bool]) -> Path | None:
    """Where the first part is that is bad; for a bad key, where its object is.

    The path is put together on the way back from what was found: spelt for every part, it would take as much memory
    as the longest name times the number of parts.
    """
    if bad(value):
        return ()
    if isinstance(value, dict) and any(map(bad, value)):
        return ()
    for name, inner in _inside(value):
        if (found := place_of(inner, bad)) is not None:
            return (name, *found)
    return None


def _inside(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def refuse_surrogates(value: Any) -> None:
    """Lone surrogates cannot be stored or sent on as UTF-8, wherever they are."""
    place = place_of(value, _holds_surrogate)
    if place is not None:
        raise InvalidRequest("holds a lone surrogate; text must be valid Unicode", path=spelt(place) or "body")


def _holds_surrogate(part: Any) -> bool:
    if not isinstance(part, str) or part.isascii():
        return False
    try:
        part.encode()
    except UnicodeEncodeError:
        return True
    return False


def _no_nul(text: str) -> str:
    if "\x00" in text:
        raise fault("must not hold the NUL character")
    return text


def _not_blank(text: str) -> str:
    if text and not text.strip():
        raise fault("must hold more than white space")
    return text


Text = Annotated[str, AfterValidator(_no_nul)]
"""Any text without NUL."""
Name = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_no_nul), AfterValidator(_not_blank)]
"""A resource's name."""
ResourceId = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_no_nul)]
"""An id of another resource; whether it exists is seen later."""


def _metadata(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if len(value) > MAX_METADATA:
        raise fault(f"must have at most {MAX_METADATA} pairs, has {len(value)}")
    for key, text in value.items():
        _metadata_pair(key, text)
    return value


def _metadata_pair(key: str, text: Any) -> None:
    if not 1 <= len(key) <= MAX_METADATA_KEY or "\x00" in key:
        raise fault(f"keys must have 1 to {MAX_METADATA_KEY} characters and no NUL; '{key[:80]}' does not")
    if not isinstance(text, str):
        raise fault(f"must be a string, not {kind_of(text)}", key)
    if len(text) > MAX_METADATA_VALUE:
        raise fault(f"must have at most {MAX_METADATA_VALUE} characters, has {len(text)}", key)
    if "\x00" in text:
        raise fault("must not hold the NUL character", key)


Metadata = Annotated[dict[str, str], BeforeValidator(_metadata)]
"""The bag of pairs that every resource may carry."""


def refuse_nul(value: Any) -> None:
    """For free-form JSON: no NUL in any text or key."""
    place = place_of(value, lambda part: isinstance(part, str) and "\x00" in part)
    if place is not None:
        raise fault("must not hold the NUL character", *place)


def _tag(value: Any) -> str | None:
    if isinstance(value, str):
        return "<string>"
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return f"<{kind}>" if isinstance(kind, str) else None


def by_type(
    *names: str, text: bool = False, tag: Callable[[Any], str | None] = _tag, wanted: str | None = None
) -> Discriminator:
    """Chooses the member of a union by its `type`, or `<string>` for a plain string where that is allowed."""
    said = wanted or f"must be {'a string or ' if text else ''}an object with `type` {one_of(list(names))}"
    # Without a context, which would make the discriminator unhashable and unfit for `X | None`.
    return Discriminator(tag, custom_error_type=UNION, custom_error_message=said)
