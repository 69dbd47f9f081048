"""Glob patterns: `*`, `?`, `[…]` within a name, `**` for any number of directories, `{a,b}` alternatives."""

import fnmatch
import re
from collections.abc import Sequence

from mango_worker.tools.base import ToolError

_MAX_ALTERNATIVES = 64


class Pattern:
    """A relative pattern, matched against the parts of a relative path. Dotfiles are no exception."""

    def __init__(self, pattern: str) -> None:
        if not pattern or pattern.startswith("/"):
            raise ToolError("pattern must be relative; name the directory in path")
        self._alternatives = [_compile(one) for one in expand_braces(pattern)]

    def matches(self, parts: Sequence[str]) -> bool:
        return any(_match(segments, parts) for segments in self._alternatives)

    def may_match_below(self, parts: Sequence[str]) -> bool:
        """Whether something inside the directory `parts` could match."""
        return any(_match_prefix(segments, parts) for segments in self._alternatives)

    def names(self, name: str) -> bool:
        """Whether the pattern spells out `name` as one of its segments."""
        return any(segment is not None and segment.literal == name for one in self._alternatives for segment in one)


class _Segment:
    def __init__(self, text: str) -> None:
        self.literal = text
        # fnmatch's translation is atomic: it cannot run into exponential time, whatever the model writes.
        self.match = re.compile(fnmatch.translate(text)).match


_Segments = tuple[_Segment | None, ...]  # None stands for `**`


def _compile(pattern: str) -> _Segments:
    texts = [text for text in pattern.split("/") if text not in ("", ".")]
    if ".." in texts:
        raise ToolError("pattern must not hold `..`")
    segments: list[_Segment | None] = []
    for text in texts:
        if text != "**":
            segments.append(_Segment(text))
        elif not segments or segments[-1] is not None:
            segments.append(None)
    if segments and segments[-1] is None:
        segments.append(_Segment("*"))
    return tuple(segments)


def _match(segments: _Segments, parts: Sequence[str]) -> bool:
    """Walk the path once with the set of positions the pattern can be in: no backtracking."""
    return len(segments) in _positions(segments, parts)


def _match_prefix(segments: _Segments, parts: Sequence[str]) -> bool:
    return any(position < len(segments) for position in _positions(segments, parts))


def _positions(segments: _Segments, parts: Sequence[str]) -> set[int]:
    positions = _skip_stars(segments, {0})
    for part in parts:
        following: set[int] = set()
        for position in positions:
            if position == len(segments):
                continue
            segment = segments[position]
            if segment is None:
                following.add(position)
            elif segment.match(part):
                following.add(position + 1)
        positions = _skip_stars(segments, following)
    return positions


def _skip_stars(segments: _Segments, positions: set[int]) -> set[int]:
    """`**` may stand for no directory at all."""
    skipped = {position + 1 for position in positions if position < len(segments) and segments[position] is None}
    return positions | skipped


def expand_braces(pattern: str) -> list[str]:
    """`a.{b,c}` becomes `a.b` and `a.c`; unbalanced braces stay as they are."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        if len(done) + len(pending) > _MAX_ALTERNATIVES:
            raise ToolError(f"pattern has more than {_MAX_ALTERNATIVES} alternatives")
        current = pending.pop()
        found = _innermost_braces(current)
        if found is None:
            done.append(current)
            continue
        start, end = found
        pending += [current[:start] + one + current[end + 1 :] for one in current[start + 1 : end].split(",")]
    return list(dict.fromkeys(done))


def _innermost_braces(text: str) -> tuple[int, int] | None:
    match = re.search(r"\{([^{}]*,[^{}]*)\}", text)
    return None if match is None else (match.start(), match.end() - 1)
