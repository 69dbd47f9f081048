"""What a model's answer means: which events it becomes, which calls it opens, how the turn goes on."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from mango.domain.calls import CUSTOM, WORKER, Call
from mango.domain.ledger import Event
from mango.domain.tools import classify, permission
from mango.ports import Ids, Json, ModelAnswer, ModelError
from mango.services import outgoing
from mango.turn.transcript import Answer, is_blank

COMPLETING = frozenset({"end_turn", "stop_sequence", "refusal", "max_tokens", "model_context_window_exceeded"})
"""Stop reasons that end a turn when no tool is called (spec mango.md, section 3.5)."""


@dataclass(frozen=True, slots=True)
class Said:
    """An answer as the turn uses it.

    Attributes:
        events: thinking, message and tool uses, in the order of decision 30.
        results: results of the calls that must not run; they follow the span's end.
        calls: the calls that stay open.
        refused: whether the model called something at all but nothing stays open.
    """

    answer: Answer
    events: tuple[Event, ...]
    results: tuple[Event, ...] = ()
    calls: tuple[Call, ...] = ()
    stop_reason: Event = field(default_factory=outgoing.end_turn)
    stop_details: Event | None = None

    @property
    def called(self) -> bool:
        return bool(self.answer.calls)


def read_answer(ids: Ids, snapshot: Mapping[str, Any], answer: ModelAnswer, used: Set[str] = frozenset()) -> Said:
    """Turns a provider's answer into events.

    `used` are the provider ids of earlier calls: some endpoints number calls anew in each answer, and refuse a
    conversation in which an id comes twice, so such a call gets an id of ours.

    Raises:
        ModelError: the answer contradicts itself; not retryable.
    """
    content = _with_own_ids(ids, [clean(block) for block in answer.content], used)
    uses = [block for block in content if block["type"] == "tool_use"]
    _check(answer.stop_reason, len(uses))
    events = _speech(ids, content)
    provider_ids: dict[str, str] = {}
    calls: list[Call] = []
    results: list[Event] = []
    for use in uses:
        event, call, result = _call(ids, snapshot, use)
        events.append(event)
        provider_ids[event["id"]] = use["id"]
        calls += [call] if call else []
        results += [result] if result else []
    refusal = answer.stop_reason == "refusal"
    return Said(
        answer=Answer(content, provider_ids),
        events=tuple(events),
        results=tuple(results),
        calls=tuple(calls),
        stop_reason={"type": "refusal"} if refusal else outgoing.end_turn(),
        stop_details=answer.stop_details if refusal else None,
    )


def _with_own_ids(ids: Ids, content: list[Json], used: Set[str]) -> list[Json]:
    taken = set(used)
    unique: list[Json] = []
    for block in content:
        if block["type"] == "tool_use":
            if not block["id"] or block["id"] in taken:
                block = {**block, "id": ids.new("toolu")}
            taken.add(block["id"])
        unique.append(block)
    return unique


def _check(stop_reason: str, uses: int) -> None:
    if uses and stop_reason == "tool_use":
        return
    if not uses and stop_reason in COMPLETING:
        return
    calls = f"{uses} tool call{'' if uses == 1 else 's'}"
    raise ModelError(
        "model_request_failed_error",
        f"the model stopped with {stop_reason!r} and {calls}, which cannot be acted on",
        retryable=False,
    )


def _speech(ids: Ids, content: list[Json]) -> list[Event]:
    events: list[Event] = []
    if any(block["type"] in ("thinking", "redacted_thinking") for block in content):
        events.append(outgoing.event(ids, "agent.thinking"))
    texts = [block["text"] for block in content if block["type"] == "text" and not is_blank(block)]
    if texts:
        blocks = [{"type": "text", "text": text} for text in texts]
        events.append(outgoing.event(ids, "agent.message", content=blocks))
    return events


def _call(ids: Ids, snapshot: Mapping[str, Any], use: Json) -> tuple[Event, Call | None, Event | None]:
    name, owner = use["name"], classify(snapshot, use["name"])
    fields: Json = {"name": name, "input": use["input"], "session_thread_id": None}
    if owner == "custom":
        event = outgoing.event(ids, "agent.custom_tool_use", **fields)
        return event, Call(event["id"], CUSTOM), None
    if owner == "worker":
        policy = permission(snapshot, name)
        allowed = policy == "always_allow"
        event = outgoing.event(
            ids,
            "agent.tool_use",
            **fields,
            evaluated_permission="allow" if allowed else "ask",
            evaluation={"type": policy},
        )
        return event, Call(event["id"], WORKER, approved=allowed), None
    event = outgoing.event(ids, "agent.tool_use", **fields, evaluated_permission="deny", evaluation=None)
    return event, None, outgoing.refused_result(ids, event["id"], f"There is no tool named {name!r}.")


def clean(value: Any) -> Any:
    """Replaces lone surrogates, which no UTF-8 text can hold, wherever a model put them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [clean(part) for part in value]
    if isinstance(value, dict):
        return {clean(name): clean(part) for name, part in value.items()}
    return value
