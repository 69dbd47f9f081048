"""What is different about the template on an emulator: where the code is, and what runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mango_local.deploy import project
from mango_local.deploy.targets import Target

Json = dict[str, Any]


def localized(
    template: Json, code: Mapping[str, Json], target: Target, variables: Mapping[str, str], *, own_runtime: bool
) -> Json:
    """The SAM template for an emulator.

    Args:
        code: the place in S3 of each function's package, by logical id.
        target: what the packages were made for.
        variables: environment variables that each function gets besides its own.
        own_runtime: the packages hold AWS's runtime client and start it themselves.
    """
    resources = template["Resources"]
    everywhere = template["Globals"]["Function"]
    everywhere["Environment"]["Variables"].update(variables)
    everywhere["Architectures"] = ["arm64" if target.machine == "aarch64" else "x86_64"]
    for name, place in code.items():
        properties = resources[name]["Properties"]
        properties["CodeUri"] = dict(place)
        if own_runtime:
            # Under a named runtime MiniStack gives exceptions names of its own, which no Retry would know.
            properties["Runtime"] = "provided.al2023"
    machine = resources["TurnMachine"]["Properties"]
    del machine["DefinitionUri"]
    machine["Definition"] = json.loads(project.machine().read_text("utf-8"))
    return template
