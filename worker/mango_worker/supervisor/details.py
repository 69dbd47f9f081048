"""The last words of an item process, for the operator: only its own lines, and never the credential."""

import contextlib

from mango_worker.credential import session_token
from mango_worker.errors import CredentialError
from mango_worker.item.outcome import LOG_PREFIX, Outcome
from mango_worker.supervisor.work import WorkItem
from mango_worker.text import one_line

MAX_LINES = 5


def last_words(raw: bytes, code: int | None, item: WorkItem) -> tuple[str, ...]:
    """The lines worth showing after an end with exit code `code`: none if all went well."""
    if code == Outcome.FINISHED:
        return ()
    said = [line for line in raw.decode("utf-8", "replace").splitlines() if line.startswith(LOG_PREFIX)]
    return tuple(one_line(_without_secret(line.removeprefix(LOG_PREFIX), item)) for line in said[-MAX_LINES:])


def _without_secret(line: str, item: WorkItem) -> str:
    # A tool in the sandbox may be able to write to its process's standard error, so nothing is taken for granted.
    secrets = [item.secret]
    with contextlib.suppress(CredentialError):
        secrets.append(session_token(item.secret))
    for secret in filter(None, secrets):
        line = line.replace(secret, "[credential]")
    return line
