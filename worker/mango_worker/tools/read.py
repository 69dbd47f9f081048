"""The `read` tool: text as it is, a range of lines, or an image or PDF as a block that the model can look at."""

import base64
import os
from collections.abc import Iterator
from pathlib import PurePosixPath

from mango_worker.tools.base import Arguments, Cancel, ToolError, ToolResult, text_result
from mango_worker.tools.workspace import Workspace

MAX_TEXT = 256 * 1024
MAX_IMAGE = 5 * 1024 * 1024  # as base64
MAX_PDF = 20 * 1024 * 1024
_CHUNK = 64 * 1024
_MEDIA = {
    ".png": ("image/png", (b"\x89PNG\r\n\x1a\n",)),
    ".jpg": ("image/jpeg", (b"\xff\xd8\xff",)),
    ".jpeg": ("image/jpeg", (b"\xff\xd8\xff",)),
    ".gif": ("image/gif", (b"GIF87a", b"GIF89a")),
    ".webp": ("image/webp", (b"RIFF",)),
    ".pdf": ("application/pdf", (b"%PDF-",)),
}


class Read:
    name = "read"
    arguments = frozenset({"file_path", "view_range"})

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def run(self, arguments: Arguments, cancel: Cancel) -> ToolResult:
        path, view_range = arguments.string("file_path"), arguments.optional_range("view_range")
        resolved = self._workspace.resolve(path)
        if (suffix := PurePosixPath(resolved).suffix.lower()) in _MEDIA:
            if view_range is not None:
                raise ToolError(f"view_range does not apply to a {suffix} file")
            return self._media(resolved, suffix)
        with self._workspace.open_file(resolved) as descriptor:
            if view_range is None:
                return _text(self._whole(descriptor, path))
            return _text(_lines(descriptor, *view_range, cancel))

    def _whole(self, descriptor: int, path: str) -> bytes:
        size = os.fstat(descriptor).st_size
        if size > MAX_TEXT:
            raise ToolError(f"{path} has {size} bytes, more than {MAX_TEXT}: read it in parts with view_range")
        # Files under /proc and the like have no size; a file may also grow.
        content = b"".join(_chunks(descriptor, MAX_TEXT + 1))
        if len(content) > MAX_TEXT:
            raise ToolError(f"{path} is larger than {MAX_TEXT} bytes: read it in parts with view_range")
        return content

    def _media(self, resolved: str, suffix: str) -> ToolResult:
        media_type, signatures = _MEDIA[suffix]
        pdf = media_type == "application/pdf"
        content = self._workspace.read_bytes(resolved, MAX_PDF if pdf else MAX_IMAGE * 3 // 4)
        if not content.startswith(signatures):
            raise ToolError(f"{resolved} is no {media_type} file, though its name says so; look at it with bash")
        data = base64.b64encode(content).decode("ascii")
        source = {"type": "base64", "media_type": media_type, "data": data}
        return ToolResult(({"type": "document" if pdf else "image", "source": source},))


def _text(content: bytes) -> ToolResult:
    if b"\x00" in content[:8192]:
        raise ToolError("this is a binary file; look at it with bash")
    return text_result(content.decode("utf-8", "replace"))


def _chunks(descriptor: int, limit: int) -> Iterator[bytes]:
    """The next `limit` bytes at most, in pieces."""
    while limit > 0 and (part := os.read(descriptor, min(_CHUNK, limit))):
        limit -= len(part)
        yield part


def _lines(descriptor: int, first: int, last: int, cancel: Cancel) -> bytes:
    """Lines `first` to `last`, counted from 1; `last` <= 0 is the end of the file. Memory stays bounded."""
    if first < 1 or 0 < last < first:
        raise ToolError("view_range must be [first, last] with 1 <= first <= last, or last <= 0 for the end")
    kept, line, content_seen = bytearray(), 1, False
    while part := os.read(descriptor, _CHUNK):
        cancel.check()
        content_seen = True
        for piece in _split(part):
            if first <= line and (last <= 0 or line <= last):
                kept += piece
            line += piece.endswith(b"\n")
        if len(kept) > MAX_TEXT:
            raise ToolError(f"these lines are larger than {MAX_TEXT} bytes: read fewer, or slice them with bash")
        if 0 < last < line:
            break
    if not kept and (content_seen or first > 1):
        raise ToolError(f"the file has fewer than {first} lines")
    return bytes(kept)


def _split(part: bytes) -> list[bytes]:
    """Pieces that end with LF only: a lone CR is no line end here."""
    pieces = part.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
