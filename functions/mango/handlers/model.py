"""The model of the round function, whose credential comes from Secrets Manager and may change while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from mango.aws.secrets import Secret, SecretUnusable
from mango.model.factory import ModelSettings, ModelSettingsError, model_client
from mango.ports import Cancellation, ModelAnswer, ModelClient, ModelError, ModelRequest

KEY_VARIABLE = "MANGO_MODEL_API_KEY"
REFUSED = (401, 403)
"""Statuses of an endpoint that does not take the credential."""


class SecretModel:
    """A `ModelClient` with the credential that the secret holds at the time of the request."""

    def __init__(self, environ: Mapping[str, str], secret: Secret) -> None:
        self._environ = {**environ}
        self._secret = secret
        self._key = ""
        self._client: ModelClient | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._current()[0].name

    def request(
        self,
        request: ModelRequest,
        cancellation: Cancellation,
        on_text: Callable[[int, str], None] | None = None,
    ) -> ModelAnswer:
        """Asks; once more with a new credential, if the one used was refused and has been replaced meanwhile.

        Raises:
            Unavailable: the secret cannot be read; trying again may help.
            ModelError: the request failed, or the secret holds no usable credential.
        """
        client, key = self._current()
        try:
            return client.request(request, cancellation, on_text)
        except ModelError as error:
            if error.status not in REFUSED:
                raise
            self._secret.forget()
            client, other = self._current()
            if other == key:
                raise
        return client.request(request, cancellation, on_text)

    def _current(self) -> tuple[ModelClient, str]:
        try:
            key = self._secret.value()
            with self._lock:
                if self._client is None or key != self._key:
                    settings = ModelSettings.from_environment({**self._environ, KEY_VARIABLE: key})
                    self._client, self._key = model_client(settings), key
                return self._client, key
        except (SecretUnusable, ModelSettingsError) as error:
            raise ModelError("model_request_failed_error", str(error), retryable=False) from None


def choose_model(environ: Mapping[str, str], secret: Secret | None) -> ModelClient:
    """The model that the environment describes; the secret is not read before a request.

    Raises:
        ModelSettingsError: a variable's value is unusable.
    """
    if secret is None:
        return model_client(ModelSettings.from_environment(environ))
    settings = ModelSettings.from_environment({**environ, KEY_VARIABLE: "not-read-yet"})
    return SecretModel(environ, secret) if settings.kind == "messages" else model_client(settings)
