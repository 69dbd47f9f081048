"""Reading `multipart/form-data` as it arrives: text fields are kept, one file is passed on piece by piece."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from mango.api.disposition import extended_filename
from mango.domain.errors import ContentTooLarge, InvalidRequest

MAX_FIELD = 1024
"""Bytes of a text field."""
MAX_HEADERS = 16 * 1024
"""Bytes of the headers of one part."""
PIECE = 256 * 1024
"""The parser is fed so much at a time, so that what it has found but nobody took stays small."""


# It warns of each malformed form, which is the client's affair: the client is told.
logging.getLogger(MultipartParser.__module__).setLevel(logging.ERROR)


class Part(NamedTuple):
    """What the headers of a part say."""

    name: str
    filename: str | None
    content_type: str | None


class _End(NamedTuple):
    """The end of the part before."""


Found = Part | bytes | _End


class FormReader:
    """A form with at most one file, called `file`. Read `file()`, then its chunks, then `fields`.

    Fields may stand before or behind the file; `fields` is complete once the chunks are used up.
    """

    def __init__(self, content_type: str, body: Iterator[bytes], allowed: frozenset[str], limit: int) -> None:
        """`allowed` names the text fields; `limit` bounds the whole body.

        Raises:
            InvalidRequest: the content type is not a form's, or its boundary is too long.
        """
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise InvalidRequest("content-type must be multipart/form-data with a boundary")
        self.fields: dict[str, str] = {}
        self._allowed = allowed
        self._body = _bounded(body, limit)
        self._found: deque[Found] = deque()
        try:
            self._parser = _Parser(boundary, self._found)
        except FormParserError as error:
            raise InvalidRequest(f"content-type cannot be read: {error}") from None
        self._items = self._read()

    def file(self) -> tuple[Part, Iterator[bytes]]:
        """The file's headers, and its content.

        Raises:
            InvalidRequest: the form has no file, or is malformed.
        """
        for item in self._items:
            if isinstance(item, Part):
                if item.name == "file":
                    return item, self._content()
                self._field(item)
        raise InvalidRequest("is required", path="file")

    def _content(self) -> Iterator[bytes]:
        yield from self._part()
        # What follows is read here, so that a malformed end shows before the file counts as stored.
        for item in self._items:
            if isinstance(item, Part):
                if item.name == "file":
                    raise InvalidRequest("is given more than once", path="file")
                self._field(item)

    def _part(self) -> Iterator[bytes]:
        for item in self._items:
            if isinstance(item, bytes):
                yield item
            else:
                return

    def _field(self, part: Part) -> None:
        if part.name not in self._allowed:
            raise InvalidRequest("is not a known field; remove it", path=part.name[:80] or "body")
        if part.name in self.fields:
            raise InvalidRequest("is given more than once", path=part.name)
        text = b""
        for piece in self._part():
            text += piece
            if len(text) > MAX_FIELD:
                raise InvalidRequest(f"must have at most {MAX_FIELD} bytes", path=part.name)
        try:
            self.fields[part.name] = text.decode()
        except UnicodeDecodeError:
            raise InvalidRequest("must be UTF-8", path=part.name) from None

    def _read(self) -> Iterator[Found]:
        for chunk in self._body:
            for start in range(0, len(chunk), PIECE):
                self._parser.feed(chunk[start : start + PIECE])
                while self._found:
                    yield self._found.popleft()
        self._parser.finish()


def _bounded(body: Iterator[bytes], limit: int) -> Iterator[bytes]:
    size = 0
    for chunk in body:
        size += len(chunk)
        if size > limit:
            raise ContentTooLarge(f"the request body is over {limit} bytes")
        yield chunk


class _Parser:
    """Turns the callbacks of the push parser into items."""

    def __init__(self, boundary: bytes, found: deque[Found]) -> None:
        self._found = found
        self._headers: dict[bytes, bytes] = {}
        self._name = self._value = b""
        self._ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_finished,
                "on_part_data": self._part_data,
                "on_part_end": lambda: found.append(_End()),
                "on_end": self._end,
            },
        )

    def feed(self, piece: bytes) -> None:
        try:
            self._parser.write(piece)
        except FormParserError as error:
            raise InvalidRequest(f"is not valid multipart/form-data: {error}", path="body") from None

    def finish(self) -> None:
        if not self._ended:
            raise InvalidRequest("the form ends before its closing boundary", path="body")

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._name = self._grow(self._name, data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value = self._grow(self._value, data[start:end])

    def _grow(self, text: bytes, more: bytes) -> bytes:
        if len(text) + len(more) + sum(map(len, self._headers.values())) > MAX_HEADERS:
            raise InvalidRequest("a part has too long headers", path="body")
        return text + more

    def _header_end(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def _headers_finished(self) -> None:
        header = self._headers.get(b"content-disposition", b"")
        disposition, options = parse_options_header(header)
        if disposition != b"form-data" or b"name" not in options:
            raise InvalidRequest("a part has no name", path="body")
        filename, extended = options.get(b"filename"), extended_filename(header)
        kind = self._headers.get(b"content-type")
        self._found.append(
            Part(
                _text(options[b"name"]),
                extended if extended is not None or filename is None else _text(filename),
                None if kind is None else _text(kind),
            )
        )

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if end > start:
            self._found.append(data[start:end])

    def _end(self) -> None:
        self._ended = True


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
