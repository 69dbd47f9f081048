from __future__ import annotations

import subprocess
import sys

import pytest

from mango.model.factory import ModelSettings, ModelSettingsError, model_client
from mango.ports import Cancellation
from tests.unit.model.conversation import ask, said, user

KEY = "sk-secret-0123456789"


def test_nothing_set_is_offline() -> None:
    client = model_client(ModelSettings.from_environment({"MANGO_OFFLINE_THINK_SECONDS": "0"}))
    assert client.name.startswith("offline")
    assert said(client.request(ask([user("x")]), Cancellation())) == "echo: x"


@pytest.mark.parametrize(
    ("environ", "kind", "name"),
    [
        ({"MANGO_MODEL_API_KEY": KEY}, "messages", "messages at https://api.anthropic.com"),
        ({"MANGO_MODEL_BASE_URL": "http://u:pw@h:1/x/"}, "messages", "messages at http://h:1/x"),
        ({"MANGO_MODEL": "messages", "MANGO_MODEL_API_KEY": KEY}, "messages", "messages at https://api.anthropic.com"),
        ({"MANGO_MODEL": "offline", "MANGO_MODEL_API_KEY": KEY}, "offline", "offline (echoes; no model is configured)"),
        ({"MANGO_MODEL": "scripted:ten-tools"}, "scripted", "scripted (ten-tools)"),
        ({"MANGO_MODEL": "bedrock", "AWS_REGION": "eu-west-1"}, "bedrock", "Amazon Bedrock in eu-west-1"),
    ],
)
def test_kinds(environ: dict[str, str], kind: str, name: str) -> None:
    settings = ModelSettings.from_environment(environ)
    client = model_client(settings)
    assert (settings.kind, client.name) == (kind, name)
    assert KEY not in repr(settings)
    assert "pw" not in client.name


def test_fields() -> None:
    settings = ModelSettings.from_environment(
        {
            "MANGO_MODEL_API_KEY": f" {KEY}\n",
            "MANGO_MODEL_AUTH": "authorization-bearer",
            "MANGO_MODEL_ID": "some-model",
            "MANGO_OFFLINE_THINK_SECONDS": "0.25",
        }
    )
    assert (settings.api_key, settings.auth) == (KEY, "authorization-bearer")
    assert (settings.model_id, settings.think_seconds) == ("some-model", 0.25)


@pytest.mark.parametrize(
    ("environ", "variable", "remedy"),
    [
        ({"MANGO_MODEL": "gpt"}, "MANGO_MODEL", "use offline"),
        ({"MANGO_MODEL": "scripted:"}, "MANGO_MODEL", "scripted:coding-agent"),
        ({"MANGO_MODEL": "scripted:nothing"}, "MANGO_MODEL", "ten-tools"),
        ({"MANGO_MODEL": "messages"}, "MANGO_MODEL_API_KEY", "needs"),
        ({"MANGO_MODEL": "bedrock"}, "MANGO_MODEL", "AWS_REGION"),
        ({"MANGO_MODEL_BASE_URL": "localhost:8000"}, "MANGO_MODEL_BASE_URL", "https://"),
        ({"MANGO_MODEL_BASE_URL": "http://h:x"}, "MANGO_MODEL_BASE_URL", "https://"),
        ({"MANGO_MODEL_BASE_URL": "http://h/v1/messages"}, "MANGO_MODEL_BASE_URL", "must not end"),
        ({"MANGO_MODEL_API_KEY": f"{KEY} x"}, "MANGO_MODEL_API_KEY", "paste"),
        ({"MANGO_MODEL_AUTH": "basic"}, "MANGO_MODEL_AUTH", "authorization-bearer"),
        ({"MANGO_OFFLINE_THINK_SECONDS": "nan"}, "MANGO_OFFLINE_THINK_SECONDS", "0.5"),
        ({"MANGO_OFFLINE_THINK_SECONDS": "-1"}, "MANGO_OFFLINE_THINK_SECONDS", "0.5"),
    ],
)
def test_errors_name_variable_and_remedy(environ: dict[str, str], variable: str, remedy: str) -> None:
    with pytest.raises(ModelSettingsError) as caught:
        model_client(ModelSettings.from_environment(environ))
    assert variable in str(caught.value)
    assert remedy in str(caught.value)
    assert KEY not in str(caught.value)


def test_anthropic_is_imported_by_no_client_before_a_request() -> None:
    code = (
        "import sys\n"
        "from mango.model.factory import ModelSettings, model_client\n"
        "for kind in ('offline', 'messages', 'bedrock'):\n"
        "    model_client(ModelSettings(kind=kind, api_key='k', region='us-east-1'))\n"
        "assert not {'anthropic', 'httpx2', 'boto3'} & set(sys.modules), 'imported too early'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
