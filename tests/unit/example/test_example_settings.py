"""What the environment says, and what children of the example get to see of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from coding_agent.failures import ExampleFailed
from coding_agent.programs import child_environment
from coding_agent.settings import UNPRIVILEGED, Settings

ENVIRON = {"MANGO_API_KEY": "sk-1", "MANGO_EXAMPLE_MODEL_ID": "model-1", "MANGO_EXAMPLE_WORKER": sys.executable}


def test_what_is_not_set_has_the_documented_default() -> None:
    settings = Settings.read(ENVIRON, process=False)
    assert settings.base_url == "http://localhost:8080"
    assert settings.docker_base_url == "http://host.docker.internal:8080"
    assert settings.image == "mango-self-hosted-worker:local"
    assert settings.worker == Path(sys.executable)
    assert "sk-1" not in repr(settings)


def test_a_server_elsewhere_has_the_same_address_in_containers() -> None:
    elsewhere = Settings.read({**ENVIRON, "MANGO_EXAMPLE_BASE_URL": "https://mango.example/"}, process=False)
    assert elsewhere.docker_base_url == elsewhere.base_url == "https://mango.example"


def test_the_agents_code_does_not_run_as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert Settings.read(ENVIRON, process=False).user == UNPRIVILEGED
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os, "getgid", lambda: 1001)
    assert Settings.read(ENVIRON, process=False).user == (1000, 1001)


def test_the_model_may_be_named_by_either_variable() -> None:
    assert Settings.read({**ENVIRON, "MANGO_MODEL_ID": "model-2"}, process=True).model_id == "model-1"
    other = {**ENVIRON, "MANGO_EXAMPLE_MODEL_ID": "", "MANGO_MODEL_ID": "model-2"}
    assert Settings.read(other, process=True).model_id == "model-2"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("MANGO_API_KEY", "", "MANGO_API_KEY is not set"),
        ("MANGO_EXAMPLE_MODEL_ID", " ", "MANGO_EXAMPLE_MODEL_ID or MANGO_MODEL_ID is not set"),
        ("MANGO_EXAMPLE_BASE_URL", "localhost:8080", "MANGO_EXAMPLE_BASE_URL must look like"),
        ("MANGO_DOCKER_BASE_URL", "ftp://x", "MANGO_DOCKER_BASE_URL must look like"),
        ("MANGO_EXAMPLE_WORKER", "/no/such/worker", "/no/such/worker is no command"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: str, told: str) -> None:
    with pytest.raises(ExampleFailed, match=told):
        Settings.read({**ENVIRON, name: value}, process=False)


def test_children_do_not_see_the_model_connection_or_the_key() -> None:
    withheld = {
        "MANGO_MODEL": "messages",
        "MANGO_MODEL_ID": "m",
        "MANGO_MODEL_API_KEY": "k",
        "MANGO_MODEL_BASE_URL": "u",
        "MANGO_API_KEY": "k",
        "ANTHROPIC_API_KEY": "k",
        "AWS_SECRET_ACCESS_KEY": "k",
    }
    kept = {"PATH": "/bin", "HOME": "/root", "DOCKER_HOST": "unix:///x"}
    assert child_environment(withheld | kept) == kept
