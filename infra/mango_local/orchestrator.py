"""The in-process orchestrator: walks the machine that Step Functions runs in the other profiles.

It is no engine of its own. It keeps nothing but the executions that run; whatever must survive this process is in
the table, and the sweeper starts it again (docs/architecture.md, section 2).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mango.domain.times import SECOND
from mango.ports import Clock
from mango_local.asl import Choice, Data, DataError, Machine, Succeed, Task, UnsupportedMachine, Wait, load, matches
from mango_local.timers import Timers
from mango_local.workers import Workers

log = logging.getLogger("mango.orchestrator")

TaskFunction = Callable[[Data], Data]
"""What a task calls: takes the data of the execution and answers what the next state sees."""


def turn_machine_path() -> Path:
    """`turn.asl.json`: beside this file in an installed wheel, at the root of a checkout otherwise."""
    here = Path(__file__).resolve().parent
    installed = here / "state_machines"
    folder = installed if installed.is_dir() else here.parent.parent / "state_machines"
    return folder / "turn.asl.json"


@dataclass(slots=True)
class _Execution:
    name: str
    state: str
    data: Data
    attempts: dict[int, int] = field(default_factory=dict)
    """How often each retrier of the present state was used, by its place."""

    def go(self, state: str, data: Data) -> None:
        self.state, self.data, self.attempts = state, data, {}


class LocalOrchestrator:
    """Runs executions of one machine. Implements the `Orchestrator` port.

    At most `workers` tasks run at once, further ones queue; waiting holds no thread. The name of an execution is free
    again when it has ended, unlike on Step Functions: an execution that is not needed ends at its first transaction.
    """

    def __init__(self, clock: Clock, *, machine: Machine | None = None, workers: int = 32) -> None:
        self._clock = clock
        self._machine = machine or load(turn_machine_path())
        self._tasks: Mapping[str, TaskFunction] = {}
        self._workers = Workers(workers, "round")
        self._timers = Timers(clock, "orchestrator-timers")
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._unread: set[str] = set()
        """Threads of which an execution is queued that has not looked at the table yet."""
        self._accepting = False

    @property
    def running(self) -> frozenset[str]:
        """Names of the executions that have not ended."""
        with self._lock:
            return frozenset(self._running)

    def begin(self, tasks: Mapping[str, TaskFunction]) -> None:
        """Accepts starts from now on; `tasks` are the functions by `Resource` of the machine.

        Earlier starts are lost, as any start may be: the sweeper repeats them.
        """
        if missing := self._machine.resources - tasks.keys():
            raise UnsupportedMachine(f"nothing is known to run {', '.join(sorted(missing))}")
        with self._lock:
            self._tasks, self._accepting = tasks, True

    def start(self, session_id: str, thread_id: str, wake: int) -> None:
        """Starts execution `<thread>-<wake>`; nothing happens while one of that name runs.

        Nothing happens either while an earlier one of the thread still queues for its first task: it will see all
        that this one would, and a queue that is longer than the sweeper's patience must not feed itself.
        """
        name = f"{thread_id}-{wake}"
        with self._lock:
            if not self._accepting or name in self._running or thread_id in self._unread:
                return
            self._running.add(name)
            self._unread.add(thread_id)
        data = {"session_id": session_id, "thread_id": thread_id, "execution": name}
        self._advance(_Execution(name, self._machine.start, data))

    def stop(self, seconds: float) -> int:
        """Takes no more starts, waits for running tasks at most so long; returns how many were left behind."""
        with self._lock:
            self._accepting = False
        self._timers.stop()
        return self._workers.stop(seconds)

    def _advance(self, execution: _Execution) -> None:
        """Walks on to the next state that takes time."""
        try:
            while not self._enter(execution):
                pass
        except DataError as error:
            self._end(execution)
            log.error("execution %s failed in state %s: %s", execution.name, execution.state, error)

    def _enter(self, execution: _Execution) -> bool:
        """Enters the present state; False if it took no time and another state follows."""
        match self._machine.states[execution.state]:
            case Choice() as choice:
                execution.go(choice.choose(execution.data), execution.data)
                return False
            case Task() as task:
                # Each task queues anew, so that a long turn does not keep others from a thread of the pool.
                self._workers.submit(partial(self._perform, execution, task))
            case Wait() as wait:
                moment = wait.until(execution.data, self._clock.now())
                execution.go(wait.next, execution.data)
                self._timers.at(moment, partial(self._advance, execution))
            case Succeed():
                self._end(execution)
        return True

    def _perform(self, execution: _Execution, task: Task) -> None:
        with self._lock:
            self._unread.discard(execution.data["thread_id"])
        try:
            answer = self._tasks[task.resource](execution.data)
        except Exception as error:  # the execution's outermost place: Retry and Catch see whatever a task raises
            self._failed(execution, task, error)
        else:
            execution.go(task.next, answer)
            self._advance(execution)

    def _failed(self, execution: _Execution, task: Task, error: Exception) -> None:
        name = type(error).__name__
        delay = _retry_delay(execution, task, name)
        if delay is not None:
            log.warning("execution %s: %s failed (%s: %s), again in %g s", *_what(execution), name, error, delay)
            moment = self._clock.now() + int(delay * SECOND)
            self._timers.at(moment, partial(self._advance, execution))
            return
        log.error("execution %s: %s failed for good", *_what(execution), exc_info=error)
        for catcher in task.catchers:
            if matches(catcher.errors, name):
                execution.go(catcher.next, catcher.caught(execution.data, name, str(error)))
                self._advance(execution)
                return
        self._end(execution)

    def _end(self, execution: _Execution) -> None:
        with self._lock:
            self._running.discard(execution.name)


def _retry_delay(execution: _Execution, task: Task, name: str) -> float | None:
    """Seconds until the task is tried again; None when its retriers are used up. As in Step Functions, the first
    retrier that covers the error decides alone."""
    for place, retrier in enumerate(task.retriers):
        if matches(retrier.errors, name):
            used = execution.attempts.get(place, 0)
            if used >= retrier.attempts:
                return None
            execution.attempts[place] = used + 1
            return retrier.delay(used)
    return None


def _what(execution: _Execution) -> tuple[str, str]:
    return execution.name, execution.state
