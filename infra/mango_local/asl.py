"""The subset of Amazon States Language that a machine of ours may use, read strictly.

Whatever is not listed here is refused when the file is read, so that a machine which this profile would execute
otherwise than Step Functions never starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mango.domain.times import SECOND, micros

Data = dict[str, Any]


class UnsupportedMachine(ValueError):
    """The file uses something that the interpreter does not know, or is not a machine."""


class DataError(ValueError):
    """A path of the machine does not fit the data of the execution (`States.Runtime` of Step Functions)."""


@dataclass(frozen=True, slots=True)
class Retrier:
    """When and how often a failed task is tried again. Jitter is not reproduced: one process needs none."""

    errors: tuple[str, ...]
    interval: float = 1.0
    attempts: int = 3
    rate: float = 2.0
    max_delay: float | None = None

    def delay(self, attempt: int) -> float:
        """Seconds before the `attempt`-th repetition, counted from 0."""
        seconds = self.interval * self.rate**attempt
        return seconds if self.max_delay is None else min(seconds, self.max_delay)


@dataclass(frozen=True, slots=True)
class Catcher:
    """Where a task goes that failed for good; `into` is the field that takes `Error` and `Cause`, else they are all."""

    errors: tuple[str, ...]
    next: str
    into: str | None = None

    def caught(self, data: Data, name: str, cause: str) -> Data:
        """The data of the state that follows."""
        failure = {"Error": name, "Cause": cause}
        return failure if self.into is None else {**data, self.into: failure}


@dataclass(frozen=True, slots=True)
class Task:
    resource: str
    next: str
    retriers: tuple[Retrier, ...] = ()
    catchers: tuple[Catcher, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    field: str
    equals: str
    next: str


@dataclass(frozen=True, slots=True)
class Choice:
    rules: tuple[Rule, ...]
    default: str

    def choose(self, data: Data) -> str:
        """The state to go to."""
        for rule in self.rules:
            if _at(data, rule.field) == rule.equals:
                return rule.next
        return self.default


@dataclass(frozen=True, slots=True)
class Wait:
    next: str
    seconds: float | None = None
    field: str | None = None

    def until(self, data: Data, now: int) -> int:
        """The moment at which the execution goes on, in microseconds."""
        if self.field is None:
            return now + int((self.seconds or 0) * SECOND)
        text = _at(data, self.field)
        try:
            return micros(datetime.fromisoformat(text))
        except (TypeError, ValueError):
            raise DataError(f"$.{self.field} is not a time: {text!r}") from None


@dataclass(frozen=True, slots=True)
class Succeed:
    pass


State = Task | Choice | Wait | Succeed


@dataclass(frozen=True, slots=True)
class Machine:
    """A checked machine: every state that is named exists."""

    start: str
    states: Mapping[str, State]

    @property
    def resources(self) -> frozenset[str]:
        """What its tasks call."""
        return frozenset(state.resource for state in self.states.values() if isinstance(state, Task))


def matches(errors: tuple[str, ...], name: str) -> bool:
    """Whether `ErrorEquals` covers an error, which on Lambda is named after its exception's class."""
    return name in errors or "States.ALL" in errors or "States.TaskFailed" in errors


def load(path: Path) -> Machine:
    """Reads a machine.

    Raises:
        UnsupportedMachine: naming the file, the state and what is wrong with it.
    """
    try:
        return parse(path.read_text("utf-8"))
    except UnsupportedMachine as error:
        raise UnsupportedMachine(f"{path}: {error}") from None


def parse(text: str) -> Machine:
    """Reads a machine from its text; raises `UnsupportedMachine`."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UnsupportedMachine(f"not JSON: {error}") from None
    _fields("the machine", document, required={"StartAt", "States"}, optional={"Comment"})
    states = {name: _state(name, body) for name, body in document["States"].items()}
    machine = Machine(document["StartAt"], states)
    _check_targets(machine)
    return machine


def _state(name: str, body: Any) -> State:
    kind = body.get("Type") if isinstance(body, dict) else None
    if kind not in _READERS:
        raise UnsupportedMachine(f"state {name}: Type {kind!r} is not supported (only {', '.join(_READERS)})")
    return _READERS[kind](f"state {name}", body)


def _task(where: str, body: Data) -> Task:
    _fields(where, body, required={"Type", "Resource", "Next"}, optional={"Comment", "Retry", "Catch"})
    return Task(
        resource=_text(where, body["Resource"]),
        next=body["Next"],
        retriers=tuple(_retrier(f"{where}, Retry", each) for each in body.get("Retry", ())),
        catchers=tuple(_catcher(f"{where}, Catch", each) for each in body.get("Catch", ())),
    )


def _retrier(where: str, body: Any) -> Retrier:
    numbers = {"IntervalSeconds", "BackoffRate", "MaxAttempts", "MaxDelaySeconds"}
    _fields(where, body, required={"ErrorEquals"}, optional=numbers | {"JitterStrategy", "Comment"})
    for name in numbers & body.keys():
        _number(f"{where}, {name}", body[name])
    return Retrier(
        errors=_errors(where, body["ErrorEquals"]),
        interval=body.get("IntervalSeconds", 1),
        attempts=body.get("MaxAttempts", 3),
        rate=body.get("BackoffRate", 2.0),
        max_delay=body.get("MaxDelaySeconds"),
    )


def _catcher(where: str, body: Any) -> Catcher:
    _fields(where, body, required={"ErrorEquals", "Next"}, optional={"ResultPath", "Comment"})
    into = body.get("ResultPath", "$")
    return Catcher(
        errors=_errors(where, body["ErrorEquals"]),
        next=body["Next"],
        into=None if into == "$" else _path(f"{where}, ResultPath", into),
    )


def _choice(where: str, body: Data) -> Choice:
    _fields(where, body, required={"Type", "Choices", "Default"}, optional={"Comment"})
    return Choice(tuple(_rule(f"{where}, Choices", each) for each in body["Choices"]), body["Default"])


def _rule(where: str, body: Any) -> Rule:
    _fields(where, body, required={"Variable", "StringEquals", "Next"}, optional={"Comment"})
    return Rule(_path(where, body["Variable"]), _text(where, body["StringEquals"]), body["Next"])


def _wait(where: str, body: Data) -> Wait:
    _fields(where, body, required={"Type", "Next"}, optional={"Comment", "Seconds", "TimestampPath"})
    if ("Seconds" in body) == ("TimestampPath" in body):
        raise UnsupportedMachine(f"{where}: takes either Seconds or TimestampPath")
    if "Seconds" in body:
        return Wait(body["Next"], seconds=_number(f"{where}, Seconds", body["Seconds"]))
    return Wait(body["Next"], field=_path(f"{where}, TimestampPath", body["TimestampPath"]))


def _succeed(where: str, body: Data) -> Succeed:
    _fields(where, body, required={"Type"}, optional={"Comment"})
    return Succeed()


_READERS: dict[Any, Callable[[str, Data], State]] = {
    "Task": _task,
    "Choice": _choice,
    "Wait": _wait,
    "Succeed": _succeed,
}


def _fields(where: str, body: Any, *, required: set[str], optional: set[str]) -> None:
    if not isinstance(body, dict):
        raise UnsupportedMachine(f"{where}: not an object")
    if missing := required - body.keys():
        raise UnsupportedMachine(f"{where}: {', '.join(sorted(missing))} is missing")
    if unknown := body.keys() - required - optional:
        raise UnsupportedMachine(f"{where}: {', '.join(sorted(unknown))} is not supported")


def _errors(where: str, value: Any) -> tuple[str, ...]:
    if not (isinstance(value, list) and value and all(isinstance(each, str) for each in value)):
        raise UnsupportedMachine(f"{where}: ErrorEquals is not a list of names")
    return tuple(value)


def _path(where: str, value: Any) -> str:
    if not (isinstance(value, str) and value.startswith("$.") and value[2:].isidentifier()):
        raise UnsupportedMachine(f"{where}: only paths of the form $.name are supported, not {value!r}")
    return value[2:]


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UnsupportedMachine(f"{where}: {value!r} is not text")
    return value


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise UnsupportedMachine(f"{where}: {value!r} is not a number")
    return value


def _check_targets(machine: Machine) -> None:
    for name, state in machine.states.items():
        for target in _targets(state):
            if target not in machine.states:
                raise UnsupportedMachine(f"state {name}: there is no state {target!r}")
    if machine.start not in machine.states:
        raise UnsupportedMachine(f"StartAt: there is no state {machine.start!r}")


def _targets(state: State) -> list[Any]:
    match state:
        case Task():
            return [state.next, *(each.next for each in state.catchers)]
        case Choice():
            return [state.default, *(rule.next for rule in state.rules)]
        case Wait():
            return [state.next]
        case Succeed():
            return []


def _at(data: Data, field: str) -> Any:
    if field not in data:
        raise DataError(f"there is no $.{field}")
    return data[field]
