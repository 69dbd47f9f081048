"""JSON bodies that are made to be slow are refused early, by their bytes."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mango.api import json_body
from mango.api.json_body import MAX_BODY, MAX_VALUES, decode
from mango.domain.errors import InvalidRequest

JSON = {"content-type": "application/json"}
Value = None | bool | int | str | list["Value"] | dict[str, "Value"]
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a,[]{}":\\ ü', max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(',[{"\\', max_size=3), inner, max_size=4),
    max_leaves=12,
)


def refused(body: bytes) -> str:
    """What is said about a body, within a second or two."""
    started = time.perf_counter()
    with pytest.raises(InvalidRequest) as caught:
        decode(body, JSON)
    assert time.perf_counter() - started < 5
    return caught.value.message


def test_a_repeated_key_is_found_in_linear_time() -> None:
    body = b"{" + b",".join(b'"k%d":1' % n for n in range(60_000)) + b',"k59999":1}'
    assert refused(body) == "body: holds the key 'k59999' twice in one object"


@pytest.mark.parametrize("value", [b"[]", b"{}", b'""', b"1", b'{"":[[]]}'])
def test_too_many_values(value: bytes) -> None:
    body = b"[" + value + (b"," + value) * ((MAX_BODY - 3 - len(value)) // (len(value) + 1)) + b"]"
    assert refused(body) == f"body: holds more than {MAX_VALUES} values"


def test_commas_inside_texts_are_not_values() -> None:
    text = ',[{\\"' * 1_500_000
    assert decode(json.dumps({"text": text}).encode(), JSON) == {"text": text}


@pytest.mark.parametrize(
    "body",
    [
        b'"' * MAX_BODY,
        b'"' + b'\\"' * (MAX_BODY // 2 - 1),
        b"[" * MAX_BODY,
        b"[" + b" " * (MAX_BODY - 1),
        b'"\xff' * (MAX_BODY // 2),
        b"[" + b'"",' * 900_000 + b'""' * 14_000_000,
    ],
)
def test_what_is_no_json_is_counted_in_linear_time(body: bytes) -> None:
    assert refused(body)


def count(value: Value) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@given(values, st.sampled_from([None, 1]))
def test_exactly_the_values_are_counted(value: Value, indent: int | None) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_body, "MAX_VALUES", count(value))
        assert decode(body, JSON) == value
        patched.setattr(json_body, "MAX_VALUES", count(value) - 1)
        assert refused(body).startswith("body: holds more than")
