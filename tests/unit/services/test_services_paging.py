"""Cursors are good where they came from, and nowhere else."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mango.domain.errors import InvalidRequest
from mango.services.paging import Cursors, check_limit

HERE = Cursors("events", "wrkspc_a", parent="sesn_a", filters={"types": ["x"], "limit": None}, order="asc")
PLACE = {"place": [1, 2, 0, 0]}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcé"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["place", "edge", "ü"]), json_values, max_size=3))
def test_round_trip(position: dict[str, Any]) -> None:
    cursor = HERE.encode(position)
    assert HERE.decode(cursor) == position
    assert cursor.isascii() and "=" not in cursor and "/" not in cursor and "+" not in cursor


@pytest.mark.parametrize(
    "elsewhere",
    [
        replace(HERE, kind="sessions"),
        replace(HERE, workspace_id="wrkspc_b"),
        replace(HERE, parent="sesn_b"),
        replace(HERE, filters={"types": ["y"], "limit": None}),
        replace(HERE, filters={}),
        replace(HERE, order="desc"),
    ],
)
def test_bound_to_everything(elsewhere: Cursors) -> None:
    with pytest.raises(InvalidRequest, match="page: invalid page cursor"):
        elsewhere.decode(HERE.encode(PLACE))


def test_filters_in_another_order_are_the_same() -> None:
    other = replace(HERE, filters={"limit": None, "types": ["x"]})
    assert other.decode(HERE.encode(PLACE)) == PLACE


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="page: invalid page cursor"):
        HERE.decode(text)


@pytest.mark.parametrize("text", ["", "x" * 5000, "bnVsbA", "W10", "Ww", "WzEsIDIsIDNd", "[" * 900, "\x00", "é"])
def test_chosen_nonsense_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        HERE.decode(text)
    with pytest.raises(InvalidRequest):
        HERE.decode(base64.urlsafe_b64encode(text.encode()).decode())


def test_a_changed_place_is_refused() -> None:
    raw = base64.urlsafe_b64decode(HERE.encode(PLACE) + "==")
    with pytest.raises(InvalidRequest):
        HERE.decode(base64.urlsafe_b64encode(raw.replace(b"[1,", b"[9,")).decode())


def test_limits() -> None:
    assert [check_limit(limit, 20, 100) for limit in (None, 1, 100)] == [20, 1, 100]
    for bad in (0, -1, 101):
        with pytest.raises(InvalidRequest, match="limit: must be a whole number from 1 to 100"):
            check_limit(bad, 20, 100)
