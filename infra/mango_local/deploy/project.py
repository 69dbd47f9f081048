"""Where the files of a deployment are: in the checkout that this code runs from."""

from __future__ import annotations

from pathlib import Path

from mango_local.deploy.errors import DeployFailed

_ROOT = Path(__file__).resolve().parents[3]


def root() -> Path:
    """The checkout. Raises `DeployFailed` where there is none, as in an installed wheel."""
    if not (_ROOT / "template.yaml").is_file() or not (_ROOT / "functions/mango").is_dir():
        raise DeployFailed("deploying needs a checkout of Mango: template.yaml is not part of the installed package")
    return _ROOT


def template() -> Path:
    """The SAM template."""
    return root() / "template.yaml"


def sources() -> Path:
    """The folder that holds the package `mango`."""
    return root() / "functions"


def machine() -> Path:
    """The state machine of a turn."""
    return root() / "state_machines/turn.asl.json"
