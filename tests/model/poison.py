"""Executable model of poison parking (docs/architecture.md, section 6): work that nobody survives is offered no more.

One session's work item, two workers that may die or give up as often as they like, an operator, interrupts. What
reads one item and writes another (opening calls, ending work) takes two steps, read and conditional commit; the rest
is one step. The rules of leases and tokens themselves are in the model of work leases; here they are kept short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

LIMIT = 2
"""Claims without a result after which work is parked."""
QUEUED, HELD, STOPPED = "queued", "held", "stopped"
OPEN, ANSWERED, CLOSED = "open", "answered", "closed"


class Work(NamedTuple):
    """The session's one live item, or its last one, together with the session's pointer to it (`ver`)."""

    id: int = 0
    state: str = STOPPED
    gen: int = 0
    claims: int = 0
    live: bool = False
    ver: int = 0


class Worker(NamedTuple):
    """What a worker believes to hold; id 0 is nothing."""

    id: int = 0
    gen: int = 0


class Reading(NamedTuple):
    """What somebody who ends the work has read: the item, and the version of the calls. `gen` 0: not by a token."""

    work: Work
    cver: int
    gen: int


class Left(NamedTuple):
    """What may still happen in a run."""

    turns: int = 1
    width: int = 1
    interrupts: int = 0
    results: int = 0
    stops: int = 0
    expiries: int = 0


class State(NamedTuple):
    """The world. `since` is a ghost: the true number of claims since the last result."""

    left: Left
    work: Work = Work()
    calls: tuple[str, ...] = ()
    cver: int = 0
    asking: tuple[int, int, bool] | None = None
    ending: tuple[Reading, ...] = ()
    workers: tuple[Worker, ...] = (Worker(), Worker())
    parked: bool = False
    since: int = 0


class Violation(Exception):
    """The protocol did what it must not."""


class Protocol:
    """The rules; `broken` names one that is left out."""

    def __init__(self, broken: str = "") -> None:
        self._broken = broken

    def open_calls(self, s: State) -> State:
        """The round's last commit: opens the calls, and makes sure of live work on the pointer it read."""
        assert s.asking is not None
        if s.asking[:2] != pointer(s)[:2] and self._broken != "ask_unconditional":
            return s._replace(asking=pointer(s))
        live = s.asking[2]
        calls = (OPEN,) * s.left.width
        s = s._replace(asking=None, calls=calls, cver=s.cver + 1, parked=False)
        if live:
            return s
        return s._replace(work=queued(s.work, claims=0), since=0)

    def claim(self, s: State, n: int) -> State | None:
        w = s.work
        if not (w.state == QUEUED or (w.state == HELD and not w.live)):
            return None
        if w.claims >= LIMIT and self._broken != "claim_spent":
            return None  # left to the sweeper
        count = w.claims + (self._broken != "no_count")
        w = w._replace(state=HELD, gen=w.gen + 1, claims=count, live=True)
        return with_worker(s._replace(work=w, since=s.since + 1), n, Worker(w.id, w.gen))

    def post(self, s: State, n: int, call: int) -> State | None:
        """A result: conditional on the claim and on the open call; it also clears the count."""
        w, k = s.work, s.workers[n]
        held = w.state == HELD or self._broken == "token_survives"
        if (k.id, k.gen) != (w.id, w.gen) or not held or not w.live or s.calls[call] != OPEN:
            return None
        if w.state == STOPPED:
            raise Violation("a result arrives although the work was parked or stopped")
        calls = (*s.calls[:call], ANSWERED, *s.calls[call + 1 :])
        claims = w.claims if self._broken == "no_reset" else 0
        return s._replace(calls=calls, cver=s.cver + 1, work=w._replace(claims=claims), since=0)

    def end(self, s: State, reading: Reading) -> State:
        """Stop, by a worker, an operator or the sweeper: the work ends, is followed by another, or is parked."""
        rest = list(s.ending)
        rest.remove(reading)
        s = s._replace(ending=tuple(rest))
        w = s.work
        if w.id != reading.work.id or w.state == STOPPED or (reading.gen and reading.gen != w.gen):
            return s
        current = Reading(w, s.cver, reading.gen)
        blind = self._broken == "end_unconditional"
        if reading != current and not (blind and reading.work == w):
            return s._replace(ending=(*s.ending, current))  # refused: reads again
        open_calls = OPEN in s.calls or (blind and reading.cver != s.cver)
        ended = w._replace(state=STOPPED, live=self._broken == "token_survives", ver=w.ver + 1)
        if self._broken == "pointer_unmoved":
            ended = ended._replace(ver=w.ver)
        if not open_calls:
            return s._replace(work=ended)
        if reading.work.claims >= LIMIT:
            if s.since < LIMIT:
                raise Violation("parked although a result came since")
            return s._replace(work=ended, parked=self._broken != "silent")
        return s._replace(work=queued(ended, claims=0 if self._broken == "no_carry" else w.claims))

    def sweep(self, s: State) -> State:
        """An expired claim is queued again, or, once spent, ended."""
        w = s.work
        if w.claims >= LIMIT:
            return s._replace(ending=(*s.ending, Reading(w, s.cver, w.gen)))
        return s._replace(work=w._replace(state=QUEUED))


def pointer(s: State) -> tuple[int, int, bool]:
    return (s.work.id, s.work.ver, s.work.state != STOPPED)


def queued(last: Work, claims: int) -> Work:
    return Work(last.id + 1, QUEUED, claims=claims, ver=last.ver + 1)


def with_worker(s: State, n: int, worker: Worker) -> State:
    return s._replace(workers=tuple(sorted((*s.workers[:n], worker, *s.workers[n + 1 :]))))


def spend(s: State, what: str) -> State:
    return s._replace(left=s.left._replace(**{what: getattr(s.left, what) - 1}))


def successors(rules: Protocol, s: State) -> Iterator[tuple[str, State]]:
    yield from _session(rules, s)
    yield from _work(rules, s)
    for n, worker in enumerate(s.workers):
        yield from _worker(rules, s, n, worker)


def _session(rules: Protocol, s: State) -> Iterator[tuple[str, State]]:
    if s.left.turns and OPEN not in s.calls and s.asking is None:
        yield "a turn reads the pointer", spend(s, "turns")._replace(asking=pointer(s))
    if s.asking is not None:
        yield "the turn opens calls", rules.open_calls(s)
    if OPEN in s.calls and s.left.interrupts:
        calls = tuple(CLOSED if call == OPEN else call for call in s.calls)
        yield "an interrupt", spend(s, "interrupts")._replace(calls=calls, cver=s.cver + 1, parked=False)


def _work(rules: Protocol, s: State) -> Iterator[tuple[str, State]]:
    w = s.work
    if w.state != STOPPED and s.left.stops:
        yield "an operator stops", spend(s, "stops")._replace(ending=(*s.ending, Reading(w, s.cver, 0)))
    for reading in set(s.ending):
        yield "an end commits", rules.end(s, reading)
    if w.state != HELD:
        return
    alive = Worker(w.id, w.gen) in s.workers
    if w.live and (not alive or s.left.expiries):
        yield "the lease expires", (spend(s, "expiries") if alive else s)._replace(work=w._replace(live=False))
    if not w.live and not any(reading.work == w for reading in s.ending):
        yield "the sweeper", rules.sweep(s)


def _worker(rules: Protocol, s: State, n: int, worker: Worker) -> Iterator[tuple[str, State]]:
    if not worker.id:
        claimed = rules.claim(s, n)
        if claimed is not None:
            yield "a claim", claimed
        return
    yield "a worker dies", with_worker(s, n, Worker())
    if len(s.ending) < 2:
        given_up = Reading(s.work, s.cver, worker.gen)
        valid = s.work.live and (worker.id, worker.gen) == (s.work.id, s.work.gen)
        if valid and s.work.state == HELD:
            yield "a worker gives up", with_worker(s, n, Worker())._replace(ending=(*s.ending, given_up))
    for call, state in enumerate(s.calls):
        if state == OPEN and s.left.results:
            posted = rules.post(spend(s, "results"), n, call)
            if posted is not None:
                yield f"a result for call {call}", posted


def check(s: State) -> None:
    if OPEN in s.calls and s.work.state == STOPPED and not s.parked:
        raise Violation("an open call without live work, and nobody is told")
    if s.parked and (OPEN not in s.calls or s.work.state != STOPPED):
        raise Violation("told that work is parked, which it is not")
    if s.since > LIMIT:
        raise Violation("offered again after as many claims without a result as are allowed")


def settled(s: State) -> bool:
    """Nothing moves by itself any more: all is answered, or the session knows that it must act."""
    return s.work.state == STOPPED and s.asking is None and not s.ending and (OPEN not in s.calls or s.parked)


def explore(left: Left, broken: str = "", limit: int = 1_000_000) -> tuple[int, int]:
    """Visits every state; returns how many there are, and in how many of them work is parked.

    Raises:
        Violation: with the steps that lead there.
    """
    rules, start = Protocol(broken), State(left)
    came: dict[State, tuple[State, str] | None] = {start: None}
    back: dict[State, list[State]] = {start: []}
    todo = deque([start])
    while todo:
        s, label = todo.popleft(), ""
        try:
            for label, after in successors(rules, s):
                if after not in came:
                    check(after)
                    came[after], back[after] = (s, label), []
                    todo.append(after)
                back[after].append(s)
        except Violation as violation:
            raise Violation(f"{violation}\n" + "\n".join([*_trace(came, s), label])) from None
        assert len(came) <= limit, "too many states"
    _all_can_settle(came, back)
    return len(came), sum(s.parked for s in came)


def _all_can_settle(
    came: dict[State, tuple[State, str] | None],
    back: dict[State, list[State]],
) -> None:
    good = {s for s in came if settled(s)}
    todo = deque(good)
    while todo:
        for s in back[todo.popleft()]:
            if s not in good:
                good.add(s)
                todo.append(s)
    for s in came:
        if s not in good:
            raise Violation("cannot come to rest any more\n" + "\n".join(_trace(came, s)))


def _trace(came: dict[State, tuple[State, str] | None], s: State) -> list[str]:
    lines: list[str] = []
    step = came[s]
    while step is not None:
        s, label = step
        lines.append(label)
        step = came[s]
    return lines[::-1]
