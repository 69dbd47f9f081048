"""template.yaml, read and translated once for all tests of this folder."""

from __future__ import annotations

import os
from typing import Any

import pytest

from mango_local.deploy import translation
from mango_local.deploy.emulated import localized
from mango_local.deploy.errors import DeployFailed
from mango_local.deploy.plan import FUNCTIONS
from mango_local.deploy.targets import this_interpreter

Json = dict[str, Any]


@pytest.fixture(scope="session")
def template() -> Json:
    """As written, short forms written out."""
    try:
        return translation.read_template()
    except DeployFailed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"SAM's translator cannot be had: {error}")


@pytest.fixture(scope="session")
def translated(template: Json) -> Json:
    """As CloudFormation on an emulator gets it."""
    import copy

    code = {each.name: {"Bucket": "packages", "Key": f"{each.name}.zip"} for each in FUNCTIONS}
    local = localized(copy.deepcopy(template), code, this_interpreter(), {"EXTRA": "1"}, own_runtime=True)
    return translation.translate(local, {"Stage": "local"}, "us-east-1")


@pytest.fixture(scope="session")
def resources(template: Json) -> Json:
    found: Json = template["Resources"]
    return found
