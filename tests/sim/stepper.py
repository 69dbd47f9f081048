"""Runs actors in turns, one store operation at a time, in an order that a seed alone decides.

Every actor is a thread that stops before each operation on the store until it is chosen. So all interleavings of
transactions are reachable, the product's own code runs unchanged, and a seed replays exactly.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

from mango.domain.transaction import Item, Key, Transaction
from mango.memory import MemoryStore
from mango.memory.faults import Fault
from mango.ports import Page

PATIENCE = 60.0
"""Seconds an actor may take between two operations before the run is called stuck."""


class Died(BaseException):
    """The actor's process is gone; nothing in it may catch this."""


class Actor:
    """One thread of the simulated world."""

    def __init__(self, stepper: Stepper, name: str, act: Callable[[], None]) -> None:
        self.name = name
        self.over = False
        self.error: BaseException | None = None
        self.wakes_at: int | None = None
        """When it sleeps: until this time of the simulated clock."""
        self._stepper = stepper
        self._act = act
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.mortal = True

    def start(self) -> None:
        self._thread.start()
        self._wait()

    def step(self) -> None:
        """Lets it do its next operation and run on to the one after."""
        self._go.release()
        self._wait()

    def pause(self) -> None:
        """In its own thread: waits to be chosen; may die here."""
        self._stopped.release()
        self._go.acquire()
        self._stepper.perhaps_die(self)

    def _wait(self) -> None:
        assert self._stopped.acquire(timeout=PATIENCE), f"{self.name} is stuck between two operations"

    def _run(self) -> None:
        _current.actor = self
        try:
            self.pause()
            self._act()
        except Died:
            pass
        except BaseException as error:  # the outermost loop of the actor; reported by the stepper
            self.error = error
        finally:
            self.over = True
            self._stopped.release()


_current = threading.local()


class Stepper:
    """The world's clockwork: chooses, with one source of chance, who does the next operation and what befalls it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # repeatable on purpose
        self.actors: list[Actor] = []
        self.trace: list[str] = []
        self.deaths = 0
        """How many actors may still die."""
        self.losses = 0
        """How many commits may still lose their answer."""

    def spawn(self, name: str, act: Callable[[], None], *, mortal: bool = True) -> Actor:
        actor = Actor(self, name, act)
        actor.mortal = mortal
        self.actors.append(actor)
        actor.start()
        return actor

    def perhaps_die(self, actor: Actor) -> None:
        if self.deaths and actor.mortal and self.chance.random() < 0.03:
            self.deaths -= 1
            self.trace.append(f"{actor.name} dies")
            raise Died

    def fate(self) -> Fault:
        if not self.losses or self.chance.random() > 0.05:
            return Fault.NONE
        self.losses -= 1
        fate = self.chance.choice([Fault.ANSWER_LOST, Fault.LATE, Fault.NEVER, Fault.UNAVAILABLE])
        self.trace.append(f"... the next commit: {fate.name}")
        return fate

    def ready(self, now: int) -> list[Actor]:
        self.actors = [actor for actor in self.actors if not actor.over or actor.error]
        for actor in self.actors:
            if actor.error:
                raise AssertionError(f"{actor.name} failed after:\n" + "\n".join(self.trace[-60:])) from actor.error
        return [actor for actor in self.actors if actor.wakes_at is None or actor.wakes_at <= now]

    def step(self, now: int) -> bool:
        """One operation of somebody; False when nobody can do anything now."""
        ready = self.ready(now)
        if not ready:
            return False
        actor = self.chance.choice(ready)
        actor.wakes_at = None
        self.trace.append(actor.name)
        actor.step()
        return True


def pause() -> None:
    """An operation begins; outside of actors it just goes on."""
    actor: Actor | None = getattr(_current, "actor", None)
    if actor is not None:
        actor.pause()


def sleep_until(moment: int) -> None:
    """The calling actor does nothing before this time."""
    _current.actor.wakes_at = moment
    _current.actor.pause()


class SteppedStore:
    """The twin, one operation at a time."""

    def __init__(self, store: MemoryStore, stepper: Stepper) -> None:
        self.inner = store
        self._stepper = stepper

    def commit(self, transaction: Transaction) -> None:
        pause()
        self.inner.commit(transaction)

    def get(self, key: Key) -> Item | None:
        pause()
        return self.inner.get(key)

    def get_many(self, wanted: Sequence[Key]) -> list[Item | None]:
        pause()
        return self.inner.get_many(wanted)

    def query(self, pk: str, **options: Any) -> Page:
        pause()
        return self.inner.query(pk, **options)

    def query_index(self, index: str, partition: str, **options: Any) -> Page:
        pause()
        return self.inner.query_index(index, partition, **options)


class Fates:
    """Asks the stepper what befalls each commit of an actor."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper

    def decide(self, transaction: Transaction) -> Fault:
        inside = getattr(_current, "actor", None) is not None
        return self._stepper.fate() if inside else Fault.NONE
