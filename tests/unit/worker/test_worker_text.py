"""Any bytes and any string become text that JSON, UTF-8 and a terminal can take."""

from hypothesis import given
from hypothesis import strategies as st

from mango_worker.text import decode_output, head, one_line, tail, valid_text

any_string = st.text(st.characters(codec=None, exclude_categories=()))


@given(any_string)
def test_any_string_becomes_valid_and_stays_so(text: str) -> None:
    valid = valid_text(text)
    valid.encode("utf-8")
    assert "\x00" not in valid
    assert valid_text(valid) == valid


def test_halves_of_a_pair_are_joined_and_lone_ones_replaced() -> None:
    assert valid_text("\ud83c" + "\udf78") == "\U0001f378"
    assert valid_text("a\ud99cb") == "a\ufffdb"


@given(st.binary())
def test_any_output_becomes_valid_text(raw: bytes) -> None:
    decode_output(raw).encode("utf-8")


def test_output_loses_colours_titles_and_carriage_returns() -> None:
    assert decode_output(b"\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\x07end\x1b(B") == "red\nend"
    assert decode_output(b"\xed\xa0\x80") == "\ufffd\ufffd\ufffd"


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_cuts_stay_within_the_limit_and_at_characters(text: str, limit: int) -> None:
    last, cut_last = tail(text, limit)
    first, cut_first = head(text, limit)
    assert text.endswith(last) and text.startswith(first)
    assert len(last.encode()) <= limit and len(first.encode()) <= limit
    assert cut_last == cut_first == (len(text.encode()) > limit)


def test_a_line_for_the_terminal_holds_no_controls() -> None:
    assert one_line("a\x1b[2J\nb\u202ec\u2028d") == "a [2J b c d"
    assert len(one_line("x" * 1000)) == 500
