"""Which packages of others a function needs: those it imports, and what these require."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mango_local.deploy.errors import DeployFailed
from mango_local.deploy.targets import Target

OURS = "mango-agents"


def needed(imported: Iterable[str], target: Target) -> dict[str, Distribution]:
    """By name, in order: the installed packages behind top-level modules, with all they require on the target."""
    extras = _extras(target)
    waiting = [(name, extras.get(name, frozenset())) for name in sorted(_named(imported))]
    found: dict[str, Distribution] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in done:
            continue
        done.add((name, wanted))
        found[name] = _installed(name)
        for requirement in _requirements(found[name], wanted, target):
            waiting.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return dict(sorted(found.items()))


def _named(imported: Iterable[str]) -> set[str]:
    known = packages_distributions()
    missing = sorted(set(imported) - known.keys())
    if missing:
        raise DeployFailed(f"no installed package holds {', '.join(missing)}; run `make setup`")
    return {canonicalize_name(known[name][0]) for name in imported}


def _extras(target: Target) -> dict[str, frozenset[str]]:
    """The extras that Mango itself asks for."""
    ours = _requirements(_installed(OURS), frozenset(), target)
    return {canonicalize_name(each.name): frozenset(each.extras) for each in ours}


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise DeployFailed(f"the package {name} is not installed; run `make setup`") from None


def _requirements(holder: Distribution, extras: frozenset[str], target: Target) -> list[Requirement]:
    requirements = [Requirement(text) for text in holder.requires or ()]
    return [each for each in requirements if _applies(each, extras, target)]


def _applies(requirement: Requirement, extras: frozenset[str], target: Target) -> bool:
    if requirement.marker is None:
        return True
    return any(requirement.marker.evaluate({**target.markers, "extra": extra}) for extra in ("", *extras))
