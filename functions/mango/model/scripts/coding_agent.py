"""Repairs a small Python module: runs its tests, reads it, edits one operator at a time and lets the tests decide.

Nothing about the module is known beforehand. Every step follows from the tool results in the transcript, so the
script edits nothing before it saw a test fail, takes an edit back that did not help, and says so when it is at a
loss. When all tests pass it tells what was wrong, or explains the code it read.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from mango.model.answers import say, use
from mango.model.repair import Repair, repairs
from mango.model.transcript import Call, calls, offers, turn_start
from mango.model.unittest_output import TestRun, parse_run, source_file
from mango.ports import ModelAnswer, ModelRequest

TESTS = "python3 -B -m unittest -v"
"""Without writing byte code: a file edited twice in a second would be taken for the old one."""
ATTEMPTS = 3


@dataclass(slots=True)
class _Turn:
    """What the turn's tool results tell so far."""

    run: TestRun | None = None
    """The last run that counts: of the code without an edit that made nothing better."""
    source: str | None = None
    unread: list[str] = field(default_factory=list)
    """What the reads that failed said, since the last that did not."""
    garbled: int = 0
    """Runs in a row whose output could not be understood."""
    edit: Repair | None = None
    """Made, but not yet tested."""
    undo: Repair | None = None
    """Tested without success."""
    made: list[Repair] = field(default_factory=list)
    tried: set[tuple[str, str]] = field(default_factory=set)

    def take(self, call: Call) -> None:
        """Takes one tool result into account."""
        if call.name == "bash":
            self._take_run(parse_run(call.result or ""))
        elif call.name == "read":
            self.source = None if call.failed else call.result
            self.unread = [*self.unread, call.result or ""] if call.failed else []
        elif call.name == "edit":
            self._take_edit(call)

    def _take_run(self, run: TestRun) -> None:
        understood = run.passed or (run.count is not None and bool(run.failures))
        self.garbled = 0 if understood else self.garbled + 1
        if self.edit is None:
            self.run = run if understood else self.run
        elif understood and self.run is not None and _better(self.run, run):
            self.made.append(self.edit)
            self.run, self.edit = run, None
        elif understood or self.garbled >= ATTEMPTS:
            self.undo, self.edit, self.garbled = self.edit, None, 0

    def _take_edit(self, call: Call) -> None:
        old, new = call.input.get("old_string", ""), call.input.get("new_string", "")
        self.tried.add((old, new))
        if call.failed or self.source is None:
            self.source = None  # it is not what it was thought to be
        elif self.undo is not None:
            self.source, self.undo = self.source.replace(old, new), None
        else:
            self.edit = next((r for r in self.possible() if (r.old_string, r.new_string) == (old, new)), None)
            self.source = self.source.replace(old, new)

    def possible(self) -> list[Repair]:
        """Repairs of the source as it is, for the failures of the run that counts."""
        return repairs(self.source or "", self.run.failures if self.run else ())


def respond(request: ModelRequest) -> ModelAnswer:
    """The next step."""
    missing = [name for name in ("bash", "read", "edit") if not offers(request, name)]
    if missing:
        return say(f"I cannot work on code without these tools: {', '.join(missing)}.")
    turn = _Turn()
    for call in calls(request.messages[turn_start(request) :]):
        turn.take(call)
    if turn.undo is not None:
        return _edit(request, turn, turn.undo.new_string, turn.undo.old_string, "That did not help; I take it back.")
    if turn.run is None or turn.edit is not None or turn.garbled:
        if turn.garbled >= ATTEMPTS:
            return say("I cannot tell from the output whether the tests pass, so I changed nothing.")
        again = "I run the tests again." if turn.run else "I run the tests first."
        return use(request, [("bash", {"command": TESTS})], again)
    if turn.source is None and not (turn.run.passed and turn.made):
        return _read(request, turn)
    return _conclude(turn) if turn.run.passed else _repair(request, turn)


def _read(request: ModelRequest, turn: _Turn) -> ModelAnswer:
    path = _path(turn)
    if path is None:
        return say("The tests do not show which module they are for, so I changed nothing.")
    if len(turn.unread) >= ATTEMPTS:
        return say(f"I cannot read {path}: {turn.unread[-1]}")
    return use(request, [("read", {"file_path": path})], f"I read {path}.")


def _repair(request: ModelRequest, turn: _Turn) -> ModelAnswer:
    for repair in turn.possible():
        if (repair.old_string, repair.new_string) not in turn.tried:
            why = f"{repair.failure.key} fails: in `{repair.function}`, `{repair.was}` should be `{repair.becomes}`."
            return _edit(request, turn, repair.old_string, repair.new_string, why)
    failing = ", ".join(failure.key for failure in turn.run.failures) if turn.run else ""
    done = f"{_repaired(turn)}\n" if turn.made else ""
    return say(f"{done}I cannot derive a repair for what still fails: {failing}.")


def _edit(request: ModelRequest, turn: _Turn, old: str, new: str, why: str) -> ModelAnswer:
    return use(request, [("edit", {"file_path": _path(turn), "old_string": old, "new_string": new})], why)


def _path(turn: _Turn) -> str | None:
    return source_file(turn.run) if turn.run else None


def _conclude(turn: _Turn) -> ModelAnswer:
    count = turn.run.count if turn.run else 0
    if turn.made:
        return say(f"All {count} tests pass now. What was wrong:\n{_repaired(turn)}")
    return say(f"All {count} tests pass; nothing had to be changed.\n{_explained(turn.source or '')}")


def _repaired(turn: _Turn) -> str:
    lines = []
    for repair in turn.made:
        line = f"- `{repair.function}`: `{repair.was}` had to be `{repair.becomes}`"
        failure = repair.failure
        if failure.got is not None:
            line += f" ({failure.key} compared {failure.got} with {failure.expected})"
        lines.append(line + ".")
    return "\n".join(lines)


def _explained(source: str) -> str:
    """Each function in a line: its signature, what its docstring says and what it returns."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return "I cannot read the source as Python."
    lines = ["The code:"]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            returns = [ast.unparse(n.value) for n in ast.walk(node) if isinstance(n, ast.Return) and n.value]
            said = (ast.get_docstring(node) or "").split("\n")[0]
            line = f"- `{node.name}({ast.unparse(node.args)})`{f': {said}' if said else ''}"
            lines.append(line + "".join(f"\n  returns `{value}`" for value in returns))
    return "\n".join(lines)


def _better(before: TestRun, after: TestRun) -> bool:
    """Whether fewer tests fail and no other does, or a test got past the place where it failed."""
    if after.passed:
        return True
    old, new = ({failure.key: _line(failure.frames) for failure in run.failures} for run in (before, after))
    return new.keys() <= old.keys() and (len(new) < len(old) or any(new[key] > old[key] for key in new))


def _line(frames: tuple[tuple[str, int, str, str], ...]) -> int:
    return frames[0][1] if frames else 0
