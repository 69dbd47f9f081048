"""Make any string safe to send as JSON in UTF-8, and safe to print on an operator's terminal."""

import re

# CSI and OSC sequences, then the remaining two-byte escapes.
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def valid_text(text: str) -> str:
    """`text` as valid Unicode: halves of a surrogate pair are joined, lone halves and NUL become U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "\ufffd")


def decode_output(raw: bytes) -> str:
    """Terminal output as plain text: valid Unicode, no ANSI sequences, LF line ends."""
    text = raw.decode("utf-8", "replace")
    return valid_text(_ANSI.sub("", text).replace("\r\n", "\n"))


def tail(text: str, limit: int) -> tuple[str, bool]:
    """The last `limit` bytes of `text` in UTF-8, cut at a character, and whether anything was cut."""
    raw = text.encode("utf-8")
    if len(raw) <= limit:
        return text, False
    return raw[-limit:].decode("utf-8", "ignore"), True


def head(text: str, limit: int) -> tuple[str, bool]:
    """The first `limit` bytes of `text` in UTF-8, cut at a character, and whether anything was cut."""
    raw = text.encode("utf-8")
    if len(raw) <= limit:
        return text, False
    return raw[:limit].decode("utf-8", "ignore"), True


def one_line(text: str, limit: int = 500) -> str:
    """Text from elsewhere, made safe to print: one line, no control or bidi characters, bounded (characters)."""
    text = _CONTROL.sub(" ", valid_text(text))
    return text if len(text) <= limit else text[: limit - 1] + "…"
