"""What all inputs share: closed models with strict JSON types, valid text, metadata, unions chosen by `type`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, ValidationError

from mango.domain.errors import InvalidRequest, Unsupported
from mango.domain.wire.errors import UNION, fault, invalid, kind_of, one_of

Json = dict[str, Any]

MAX_METADATA = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512


class WireModel(BaseModel):
    """A closed object: unknown fields are refused and no value is coerced into another JSON type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

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

    def check_supported(self, at: str) -> None:
        """Raises `Unsupported` for what is well-formed but not built; `at` is the path of this object."""

    def to_dict(self) -> Json:
        """As plain JSON; fields that were omitted stay omitted, explicit nulls stay null."""
        return self.model_dump(exclude_unset=True, by_alias=True)


def below(at: str, *parts: str | int) -> str:
    """The path of a part of the object at `at`."""
    return ".".join([*([at] if at else []), *(str(part) for part in parts)])


def unsupported(at: str, what: str) -> Unsupported:
    """The answer to something well-formed that is not built yet."""
    return Unsupported(f"{what} is not supported yet", path=at)


def refuse_surrogates(value: Any) -> None:
    """Lone surrogates cannot be stored or sent on as UTF-8, wherever they are."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        at, part = stack.pop()
        if isinstance(part, str):
            _refuse_surrogate(at, part)
        elif isinstance(part, dict):
            for key in part:
                _refuse_surrogate(at, key)
            stack.extend((below(at, key), inner) for key, inner in part.items())
        elif isinstance(part, list):
            stack.extend((below(at, n), inner) for n, inner in enumerate(part))


def _refuse_surrogate(at: str, text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("holds a lone surrogate; text must be valid Unicode", path=at or "body") from None


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


def refuse_nul(value: Any, *path: str | int) -> None:
    """For free-form JSON: no NUL in any text or key."""
    if isinstance(value, str):
        if "\x00" in value:
            raise fault("must not hold the NUL character", *path)
    elif isinstance(value, dict):
        for key, inner in value.items():
            refuse_nul(key, *path)
            refuse_nul(inner, *path, key)
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            refuse_nul(inner, *path, n)


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
