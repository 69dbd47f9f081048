"""Error answers of a stream that does not begin."""

from __future__ import annotations

from mango.domain.errors import MangoError, Unavailable, answer_for
from mango.domain.ledger import dump_json
from mango.domain.transaction import StoreUnavailable

Headers = list[tuple[bytes, bytes]]


def error_answer(error: MangoError | StoreUnavailable, request_id: str) -> tuple[int, Headers, bytes]:
    """Status, headers and body: the envelope of wire contract, section 3.1."""
    if isinstance(error, StoreUnavailable):
        error = Unavailable()
    answer = answer_for(error)
    body = {
        "type": "error",
        "error": {"type": answer.type, "message": error.message},
        "request_id": request_id,
    }
    headers = [(b"content-type", b"application/json"), (b"request-id", request_id.encode())]
    if answer.should_retry is not None:
        headers.append((b"x-should-retry", b"true" if answer.should_retry else b"false"))
    return answer.status, headers, dump_json(body).encode()
