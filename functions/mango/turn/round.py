"""One round: a model request, and what it commits (docs/architecture.md, section 5)."""

from __future__ import annotations

from mango.domain.ledger import Event
from mango.domain.thread import Thread
from mango.domain.tools import model_tools
from mango.ports import Cancellation, Cancelled, Json, ModelError, ModelRequest
from mango.services.sessions import load_snapshot
from mango.turn import watch
from mango.turn.claim import Claimed, Done, claim
from mango.turn.context import TurnContext
from mango.turn.finish import Finish, Finished
from mango.turn.reading import read_answer
from mango.turn.transcript import Transcript, load


def run_round(turn: TurnContext, session_id: str, thread_id: str, execution: str) -> Json:
    """Does one round for an execution. Repeating it is safe at any moment: each step is fenced and read back.

    Returns:
        `{"next": "round" | "backoff" | "end"}`, with `retry_at` (RFC 3339) for a back-off.

    Raises:
        StoreUnavailable: the table does not answer; the caller tries again later.
    """
    claimed = claim(turn.services, session_id, thread_id, execution)
    if isinstance(claimed, Done):
        return {"next": claimed.next}
    finished = _ask(turn, claimed)
    if finished is None:
        return {"next": "end"}
    return Finish(turn.services, claimed, finished).commit()


def _ask(turn: TurnContext, claimed: Claimed) -> Finished | None:
    """Makes the request; None when this round was deposed meanwhile."""
    ctx, thread = turn.services, claimed.thread
    snapshot = turn.snapshots.get(thread.session_id, lambda: load_snapshot(ctx, thread.session_id))
    transcript = load(turn.transcripts, ctx.store, ctx.blobs, thread.session_id, thread.thread_id, thread.head)
    request = _request(thread, snapshot, transcript)
    cancellation = Cancellation()
    with watch.Watch(ctx, thread, cancellation) as watching:
        try:
            answer = turn.model.request(request, cancellation)
        except Cancelled:
            return _cancelled(watching.reason)
        except ModelError as error:
            return Finished(error=error)
    try:
        return Finished(said=read_answer(ctx.ids, snapshot, answer, transcript.used), usage=answer.usage)
    except ModelError as error:
        return Finished(usage=answer.usage, error=error)


def _cancelled(reason: str) -> Finished | None:
    if reason == watch.DEPOSED:
        return None
    if reason == watch.TIMED_OUT:
        late = ModelError("model_request_failed_error", "the model did not finish its answer in time", retryable=True)
        return Finished(error=late)
    return Finished()


def _request(thread: Thread, snapshot: Event, transcript: Transcript) -> ModelRequest:
    return ModelRequest(
        model=snapshot["model"],
        system=snapshot["system"],
        tools=model_tools(snapshot),
        messages=transcript.messages,
        session_id=thread.session_id,
        thread_id=thread.thread_id,
    )
