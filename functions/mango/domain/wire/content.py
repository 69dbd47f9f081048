"""Content blocks that clients send: text, image, document, and search results inside tool results."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag

from mango.domain.wire.base import Many, Text, WireModel, below, by_type, unsupported
from mango.domain.wire.errors import fault

MAX_BLOCKS = 1000
"""Blocks of one message or result."""
MAX_URL = 2048


def _not_blank(text: str) -> str:
    if not text.strip():
        raise fault("must hold more than white space; a model refuses blank text")
    return text


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise fault("must be standard base64 with padding and without line breaks") from None
    return text


Base64 = Annotated[str, Field(min_length=1), AfterValidator(_base64)]
Url = Annotated[Text, Field(min_length=1, max_length=MAX_URL)]


class TextBlock(WireModel):
    """What a user says."""

    type: Literal["text"]
    text: Annotated[Text, AfterValidator(_not_blank)]


class ResultText(WireModel):
    """What a tool printed: may be empty, and may hold NUL like any output."""

    type: Literal["text"]
    text: str


class Base64Image(WireModel):
    type: Literal["base64"]
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: Base64


class Base64Document(WireModel):
    type: Literal["base64"]
    media_type: Literal["application/pdf"]
    data: Base64


class PlainTextDocument(WireModel):
    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: Annotated[Text, Field(min_length=1)]


class UrlSource(WireModel):
    """Would have to be fetched."""

    type: Literal["url"]
    url: Url

    def check_supported(self, at: str) -> None:
        raise unsupported(at, "a source of type 'url'")


class FileSource(WireModel):
    """Would have to be read from the Files API."""

    type: Literal["file"]
    file_id: Annotated[Text, Field(min_length=1, max_length=256)]

    def check_supported(self, at: str) -> None:
        raise unsupported(at, "a source of type 'file'")


ImageSource = Annotated[
    Annotated[Base64Image, Tag("<base64>")] | Annotated[UrlSource, Tag("<url>")] | Annotated[FileSource, Tag("<file>")],
    by_type("base64", "url", "file"),
]
DocumentSource = Annotated[
    Annotated[Base64Document, Tag("<base64>")]
    | Annotated[PlainTextDocument, Tag("<text>")]
    | Annotated[UrlSource, Tag("<url>")]
    | Annotated[FileSource, Tag("<file>")],
    by_type("base64", "text", "url", "file"),
]


class ImageBlock(WireModel):
    type: Literal["image"]
    source: ImageSource

    def check_supported(self, at: str) -> None:
        self.source.check_supported(below(at, "source"))


class DocumentBlock(WireModel):
    type: Literal["document"]
    source: DocumentSource
    title: Annotated[Text, Field(max_length=500)] | None = None
    context: Text | None = None

    def check_supported(self, at: str) -> None:
        self.source.check_supported(below(at, "source"))


class SearchResultText(WireModel):
    type: Literal["text"]
    text: str


class SearchResultCitations(WireModel):
    enabled: bool


class SearchResultBlock(WireModel):
    type: Literal["search_result"]
    source: Text
    title: Text
    content: Annotated[Many[SearchResultText], Field(max_length=MAX_BLOCKS)]
    citations: SearchResultCitations


MessageBlock = Annotated[
    Annotated[TextBlock, Tag("<text>")]
    | Annotated[ImageBlock, Tag("<image>")]
    | Annotated[DocumentBlock, Tag("<document>")],
    by_type("text", "image", "document"),
]
ResultBlock = Annotated[
    Annotated[ResultText, Tag("<text>")]
    | Annotated[ImageBlock, Tag("<image>")]
    | Annotated[DocumentBlock, Tag("<document>")]
    | Annotated[SearchResultBlock, Tag("<search_result>")],
    by_type("text", "image", "document", "search_result"),
]
MessageContent = Annotated[Many[MessageBlock], Field(min_length=1, max_length=MAX_BLOCKS)]
ResultContent = Annotated[Many[ResultBlock], Field(max_length=MAX_BLOCKS)]


def check_blocks(blocks: list[MessageBlock] | list[ResultBlock], at: str) -> None:
    """Raises `Unsupported` at the first block whose source is not built."""
    for n, block in enumerate(blocks):
        block.check_supported(below(at, n))
