"""The model's credential in Secrets Manager, on moto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from mango.aws.clients import AwsSettings, Clients
from mango.aws.secrets import FRESH_SECONDS, Secret, SecretUnusable
from mango.domain.errors import Unavailable

KEY, OTHER = "sk-first-canary", "sk-second-canary"


class Kept:
    """A secret that a test changes, and the reader's clock."""

    def __init__(self) -> None:
        clients = Clients(AwsSettings(access_key_id="test", secret_access_key="test"))
        self.client: Any = clients.other("secretsmanager")
        self.now = 1000.0
        self.arn: str = self.client.create_secret(Name="model", SecretString=KEY)["ARN"]
        self.secret = Secret(self.client, self.arn, monotonic=lambda: self.now)

    def becomes(self, text: str) -> None:
        self.client.put_secret_value(SecretId=self.arn, SecretString=text)

    def is_gone(self) -> None:
        self.client.delete_secret(SecretId=self.arn, ForceDeleteWithoutRecovery=True)


@pytest.fixture
def kept() -> Iterator[Kept]:
    with mock_aws():
        yield Kept()


@pytest.mark.parametrize("text", [KEY, f" {KEY}\n", json.dumps({"api_key": KEY, "note": "x"})])
def test_plain_or_json(kept: Kept, text: str) -> None:
    kept.becomes(text)
    assert kept.secret.value() == KEY


def test_it_is_read_again_after_five_minutes(kept: Kept) -> None:
    assert kept.secret.value() == KEY
    kept.becomes(OTHER)
    kept.now += FRESH_SECONDS - 1
    assert kept.secret.value() == KEY
    kept.now += 1
    assert kept.secret.value() == OTHER


def test_it_is_read_again_when_it_was_refused(kept: Kept) -> None:
    assert kept.secret.value() == KEY
    kept.becomes(OTHER)
    kept.secret.forget()
    assert kept.secret.value() == OTHER


def test_a_known_one_stays_while_secrets_manager_fails(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    kept.secret.value()
    kept.is_gone()
    kept.now += FRESH_SECONDS
    assert kept.secret.value() == KEY
    assert "the known one stays" in caplog.text
    assert KEY not in caplog.text


def test_an_unknown_one_is_unavailable(kept: Kept) -> None:
    kept.is_gone()
    with pytest.raises(Unavailable):
        kept.secret.value()


@pytest.mark.parametrize(
    "text", ['{"key": "sk-canary"}', '{"api_key": 5}', '{"api_key": "sk-canary"', '{"api_key": " "}']
)
def test_what_is_no_credential_is_refused_without_showing_it(kept: Kept, text: str) -> None:
    kept.becomes(text)
    with pytest.raises(SecretUnusable) as raised:
        kept.secret.value()
    assert "canary" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_it_shows_no_value(kept: Kept) -> None:
    kept.secret.value()
    assert KEY not in repr(kept.secret)
