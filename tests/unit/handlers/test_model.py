"""The round function's model, and the credential that changes under it."""

from __future__ import annotations

import pytest

from mango.aws.secrets import Secret
from mango.domain.errors import Unavailable
from mango.handlers.model import SecretModel, choose_model
from mango.model.factory import ModelSettingsError
from mango.ports import Cancellation, ModelAnswer, ModelClient, ModelError
from tests.support.messages_server import Answer, Failure, MessagesServer, Recorded, text_answer
from tests.unit.model.conversation import ask, said, user

OLD, NEW = "sk-old-canary", "sk-new-canary"


class Vault:
    """A Secrets Manager that holds one text; None makes it fail."""

    def __init__(self, text: str | None = OLD) -> None:
        self.text = text
        self.reads = 0

    def get_secret_value(self, **_: str) -> dict[str, str]:
        from botocore.exceptions import EndpointConnectionError

        self.reads += 1
        if self.text is None:
            raise EndpointConnectionError(endpoint_url="x")
        return {"SecretString": self.text}


def model(vault: Vault, url: str) -> ModelClient:
    return choose_model({"MANGO_MODEL": "messages", "MANGO_MODEL_BASE_URL": url}, Secret(vault, "arn:x"))


def request(client: ModelClient) -> ModelAnswer:
    return client.request(ask([user("hi")]), Cancellation())


def only(key: str) -> object:
    """An endpoint that takes no other key."""

    def answer(recorded: Recorded) -> Answer:
        return text_answer("hello") if recorded.headers["x-api-key"] == key else Failure(401, "authentication_error")

    return answer


def test_the_secret_is_the_credential_and_is_read_once() -> None:
    vault = Vault()
    with MessagesServer(only(OLD)) as server:  # type: ignore[arg-type]
        client = model(vault, server.url)
        assert [said(request(client)) for _ in range(3)] == ["hello"] * 3
    assert vault.reads == 1


def test_a_key_that_was_rotated_comes_into_use_when_the_old_one_is_refused() -> None:
    vault = Vault()
    with MessagesServer(only(NEW)) as server:  # type: ignore[arg-type]
        client = model(vault, server.url)
        with pytest.raises(ModelError):
            request(client)
        vault.text = NEW
        assert said(request(client)) == "hello"
        assert [one.headers["x-api-key"] for one in server.requests] == [OLD, OLD, NEW]


def test_a_wrong_key_is_tried_once() -> None:
    with MessagesServer([Failure(401)]) as server, pytest.raises(ModelError) as raised:
        request(model(Vault(), server.url))
    assert (raised.value.status, raised.value.retryable, len(server.requests)) == (401, False, 1)


def test_a_secret_that_cannot_be_read_is_worth_another_try() -> None:
    with pytest.raises(Unavailable):
        request(model(Vault(None), "http://127.0.0.1:9"))


@pytest.mark.parametrize("text", ["{}", "sk-canary with spaces"])
def test_a_secret_that_holds_no_key_ends_the_turn_with_the_reason(text: str) -> None:
    with pytest.raises(ModelError) as raised:
        request(model(Vault(text), "http://127.0.0.1:9"))
    assert not raised.value.retryable
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("environ", [{"MANGO_MODEL": "offline"}, {"MANGO_MODEL": "scripted:echo"}])
def test_models_without_credentials_need_no_secret(environ: dict[str, str]) -> None:
    vault = Vault(None)
    assert said(request(choose_model({**environ, "MANGO_OFFLINE_THINK_SECONDS": "0"}, Secret(vault, "arn:x"))))
    assert vault.reads == 0


def test_settings_are_checked_before_the_secret_is_read() -> None:
    vault = Vault()
    with pytest.raises(ModelSettingsError, match="MANGO_MODEL_AUTH"):
        choose_model({"MANGO_MODEL": "messages", "MANGO_MODEL_AUTH": "x"}, Secret(vault, "arn:x"))
    assert vault.reads == 0


def test_its_name_shows_no_key() -> None:
    client = model(Vault(), "http://h:1")
    assert isinstance(client, SecretModel)
    assert client.name == "messages at http://h:1"
