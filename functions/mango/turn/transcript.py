"""The transcript: what the model is sent, built from the ledger and from the answers it gave.

Answers are kept in provider form, losslessly, in `TX` items at the seq of the commit that they caused. What users
and workers said is in the ledger already, in its final order; it is turned into provider form here, the same way
every time, so that the prefix of a conversation never changes and prompt caches stay warm.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from mango.domain import keys
from mango.domain.ledger import Commit, Event, dump_json, read_commit
from mango.domain.transaction import Item, Put, Transaction
from mango.ports import Blobs, Json, Store
from mango.services import history
from mango.services.spill import pack, unpack

RESULT_EVENTS = {
    "user.tool_result": "tool_use_id",
    "agent.tool_result": "tool_use_id",
    "user.custom_tool_result": "custom_tool_use_id",
}
"""Events that answer a call, and the field that names it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said in one commit.

    Attributes:
        content: provider blocks, verbatim.
        calls: event id of each `agent.*_tool_use` to the provider's own id of the call.
    """

    content: list[Json]
    calls: dict[str, str]


def answer_write(blobs: Blobs, workspace_id: str, session_id: str, thread_id: str, seq: int, answer: Answer) -> Put:
    """The `TX` item of an answer."""
    text = dump_json({"content": answer.content, "calls": answer.calls})
    blob_key = f"{workspace_id}/{session_id}/answers/{thread_id}/{seq}"
    return Put(keys.transcript(session_id, thread_id, seq), pack(blobs, "answer", text, blob_key))


def read_answer(blobs: Blobs, item: Item) -> Answer:
    return Answer(**json.loads(unpack(blobs, "answer", item)))


@dataclass(slots=True)
class Transcript:
    """Messages in provider form, up to and including commit `seq`."""

    seq: int = 0
    messages: list[Json] = field(default_factory=list)
    calls: dict[str, str] = field(default_factory=dict)
    """Calls without a result yet: event id to provider id."""
    used: set[str] = field(default_factory=set)
    """Provider ids of all calls so far; endpoints refuse one that comes twice."""

    def copy(self) -> Transcript:
        """Independent enough: messages are replaced when they grow, never changed."""
        return Transcript(self.seq, list(self.messages), dict(self.calls), set(self.used))

    def add(self, commit: Commit, answer: Answer | None) -> None:
        """Appends what a commit said. Its own results (of calls that must not run) come after its answer."""
        said = [block for block in answer.content if not is_blank(block)] if answer else []
        if answer is not None and said:
            self.messages.append({"role": "assistant", "content": said})
            self.calls.update(answer.calls)
            self.used.update(answer.calls.values())
        blocks = [block for event in commit.events for block in self._blocks(event)]
        if blocks:
            self._say(blocks)
        self.seq = commit.seq

    def _say(self, blocks: list[Json]) -> None:
        last = self.messages[-1] if self.messages else None
        if last is not None and last["role"] == "user":
            self.messages[-1] = {"role": "user", "content": [*last["content"], *blocks]}
        else:
            self.messages.append({"role": "user", "content": blocks})

    def _blocks(self, event: Event) -> list[Json]:
        if event["type"] == "user.message":
            return [provider_block(block) for block in event["content"] if not is_blank(block)]
        if event["type"] in RESULT_EVENTS:
            call_id = event[RESULT_EVENTS[event["type"]]]
            provider_id = self.calls.pop(call_id, None)
            return [_tool_result(provider_id, event)] if provider_id else []
        return []


def _tool_result(provider_id: str, event: Event) -> Json:
    result: Json = {"type": "tool_result", "tool_use_id": provider_id}
    content = [provider_block(block) for block in event.get("content") or [] if not is_blank(block)]
    if content:
        result["content"] = content
    if event.get("is_error"):
        result["is_error"] = True
    return result


def is_blank(block: Json) -> bool:
    """Text of nothing but white space, which models say and endpoints refuse to be told."""
    return bool(block["type"] == "text" and not block["text"].strip())


def provider_block(block: Json) -> Json:
    """A content block of an event in the Messages protocol's form. Both use the same shapes for what is supported."""
    return {name: value for name, value in block.items() if value is not None}


class TranscriptCache:
    """The transcripts of this process's latest conversations, so that a round reads only what is new.

    Sound because ledger and answers are immutable: a transcript up to a seq never changes.
    """

    def __init__(self, conversations: int = 64) -> None:
        self._conversations = conversations
        self._kept: OrderedDict[tuple[str, str], Transcript] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, session_id: str, thread_id: str) -> Transcript:
        with self._lock:
            kept = self._kept.get((session_id, thread_id))
            return kept.copy() if kept else Transcript()

    def keep(self, session_id: str, thread_id: str, transcript: Transcript) -> None:
        with self._lock:
            self._kept[(session_id, thread_id)] = transcript
            self._kept.move_to_end((session_id, thread_id))
            while len(self._kept) > self._conversations:
                self._kept.popitem(last=False)

    def observe(self, transaction: Transaction) -> None:
        """Learns from a commit of this process, so that the next round need not read what was just written.

        What comes out of order, or has its contents in a blob, is left for `load` to read.
        """
        for write in transaction.writes:
            if isinstance(write, Put) and write.key.sk.startswith(keys.LEDGER_MARK):
                self._learn(write, transaction)

    def _learn(self, ledger: Put, transaction: Transaction) -> None:
        session_id, thread_id, seq = keys.ledger_place(ledger.key)
        known = self.get(session_id, thread_id)
        if known.seq != seq - 1 or not isinstance(ledger.item["events"], str):
            return
        answer = None
        answer_key = keys.transcript(session_id, thread_id, seq)
        for write in transaction.writes:
            if isinstance(write, Put) and write.key == answer_key:
                if not isinstance(write.item["answer"], str):
                    return
                answer = Answer(**json.loads(write.item["answer"]))
        known.add(read_commit(dict(ledger.item)), answer)
        self.keep(session_id, thread_id, known)


def load(cache: TranscriptCache, store: Store, blobs: Blobs, session_id: str, thread_id: str, head: int) -> Transcript:
    """The transcript up to `head`, from memory as far as it goes and from the table for the rest."""
    transcript = cache.get(session_id, thread_id)
    if transcript.seq < head:
        answers = _answers(store, blobs, session_id, thread_id, transcript.seq)
        for commit in history.commits(store, blobs, session_id, thread_id, above=transcript.seq):
            if commit.seq > head:
                break
            transcript.add(commit, answers.get(commit.seq))
        cache.keep(session_id, thread_id, transcript.copy())
    return transcript


def _answers(store: Store, blobs: Blobs, session_id: str, thread_id: str, above: int) -> dict[int, Answer]:
    found: dict[int, Answer] = {}
    after: str | None = keys.transcript(session_id, thread_id, above).sk if above else None
    while True:
        page = store.query(keys.session_partition(session_id), prefix=keys.transcript_prefix(thread_id), after=after)
        for key, item in page.items:
            found[int(key.sk.rpartition("#")[2])] = read_answer(blobs, item)
        after = page.next
        if after is None:
            return found
