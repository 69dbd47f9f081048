"""The form reader against every way in which a body may be cut into pieces, and against nonsense."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mango.api.multipart import FormReader
from mango.domain.errors import ContentTooLarge, InvalidRequest

TYPE = "multipart/form-data; boundary=bound"
FIELDS = frozenset({"expires_in_seconds"})
HEAD = b'--bound\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n'
FIELD = b'--bound\r\nContent-Disposition: form-data; name="expires_in_seconds"\r\n\r\n3600\r\n'
END = b"--bound--\r\n"


def cut(body: bytes, size: int) -> Iterator[bytes]:
    return iter([body[n : n + size] for n in range(0, len(body), size)])


def read(pieces: Iterator[bytes], limit: int = 1 << 20) -> tuple[str | None, bytes, dict[str, str]]:
    reader = FormReader(TYPE, pieces, FIELDS, limit)
    part, chunks = reader.file()
    data = b"".join(chunks)
    return part.filename, data, reader.fields


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([b"\r", b"\n", b"-", b"bound", b"--bound", b"\r\n--boun", b"x"]), max_size=12).map(
        b"".join
    ),
    st.integers(1, 60),
    st.booleans(),
)
def test_pieces_do_not_matter(data: bytes, size: int, before: bool) -> None:
    if b"\r\n--bound" in b"\r\n" + data:
        return  # that would be a boundary
    parts = [HEAD + data + b"\r\n", FIELD]
    body = b"".join(parts[::-1] if before else parts) + END
    assert read(cut(body, size)) == ("a.txt", data, {"expires_in_seconds": "3600"})


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80) | st.sampled_from([HEAD, FIELD, END]), st.binary(max_size=40), st.integers(1, 40))
def test_nonsense_is_refused_or_read(first: bytes, second: bytes, size: int) -> None:
    for body in (first + second, HEAD + first + second, HEAD + b"\r\n" + first + second + END):
        try:
            read(cut(body, size))
        except InvalidRequest as error:
            assert error.message


def test_the_whole_body_is_bounded() -> None:
    body = HEAD + b"x" * 100 + b"\r\n" + END
    assert read(cut(body, 7), limit=len(body))[1] == b"x" * 100
    with pytest.raises(ContentTooLarge):
        read(cut(body, 7), limit=len(body) - 1)
