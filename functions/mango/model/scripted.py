"""Models that follow a script: a pure function from the transcript to the next answer.

Because a script keeps nothing between requests, a request repeated after a crash gets the same answer, and a
session can be driven through any path of the product without a model.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from mango.model import scripts
from mango.model.answers import play
from mango.model.offline import THINK_SECONDS
from mango.ports import Cancellation, ModelAnswer, ModelRequest

Script = Callable[[ModelRequest], ModelAnswer]


class ScriptNotFound(ValueError):
    """There is no such script; the message tells what there is."""


class ScriptedModel:
    """Answers what its script says, after `think_seconds`."""

    def __init__(self, title: str, script: Script, think_seconds: float = THINK_SECONDS) -> None:
        self._title = title
        self._script = script
        self._think_seconds = think_seconds

    @property
    def name(self) -> str:
        return f"scripted ({self._title})"

    def request(
        self,
        request: ModelRequest,
        cancellation: Cancellation,
        on_text: Callable[[int, str], None] | None = None,
    ) -> ModelAnswer:
        """See `ModelClient.request`; fails only if the script raises."""
        return play(self._script(request), self._think_seconds, cancellation, on_text)


def script_names() -> list[str]:
    """Names of the scripts that come with the product."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(scripts.__path__))


def find_script(reference: str) -> Script:
    """The script of this name, or of a file: `path/to/script.py`, whose function is `respond`, or `…py:function`.

    Raises:
        ScriptNotFound: nothing is there, or it is no function.
    """
    if reference in script_names():
        module = importlib.import_module(f"{scripts.__name__}.{reference.replace('-', '_')}")
        return _function(module, "respond", reference)
    path, colon, function = reference.rpartition(":")
    if not colon or not path.endswith(".py"):
        path, function = reference, "respond"
    if not path.endswith(".py"):
        raise ScriptNotFound(f"no script {reference!r}; there are {', '.join(script_names())}, or name a .py file")
    return _function(_load(Path(path)), function, reference)


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise ScriptNotFound(f"no script file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(f"mango_script_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ScriptNotFound(f"{str(path)!r} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _function(module: ModuleType, name: str, reference: str) -> Script:
    function: Script | None = getattr(module, name, None)
    if not callable(function):
        raise ScriptNotFound(f"script {reference!r} has no function {name!r}")
    return function
