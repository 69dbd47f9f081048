"""Points in time as integers (microseconds since the epoch) and as RFC 3339 text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SECOND = 1_000_000
"""Microseconds in a second."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(micros: int) -> str:
    """`2026-11-29T16:41:49.000123Z`, always with six digits, so that the text sorts like the time."""
    moment = _EPOCH + timedelta(microseconds=micros)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def micros(moment: datetime) -> int:
    """The integer form; a naive moment is taken as UTC (wire contract, section 1.1)."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
