"""How the processes of the embedded profile log: a line for people, or a JSON object for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        line = f"{moment} {record.name.removeprefix('mango.')}: {level}{record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def configure(style: LogFormat, *, verbose: bool) -> None:
    """Logs to standard error. Libraries are heard from warnings on; `verbose` adds every request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if style is LogFormat.JSON else _Text())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("mango").setLevel(logging.DEBUG if verbose else logging.INFO)
    logging.getLogger("uvicorn.access").setLevel(logging.INFO if verbose else logging.WARNING)
