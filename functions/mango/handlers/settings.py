"""What a function is told by its environment, checked when the process starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError


class SettingsError(ValueError):
    """The environment does not fit; the message names each variable, and no value."""


class Settings(BaseModel):
    """What every function needs.

    Attributes:
        table: name of the table.
        bucket: name of the bucket.
        stage: of the deployment; a dimension of the metrics.
        region: of AWS.
        endpoint_url: of what stands in for AWS; None is AWS itself.
        tracing: whether calls are recorded with X-Ray.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True)

    table: str = Field(alias="MANGO_TABLE", pattern=r"^[a-zA-Z0-9_.-]{3,255}$")
    bucket: str = Field(alias="MANGO_BUCKET", pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    stage: str = Field("local", alias="MANGO_STAGE", max_length=64)
    region: str = Field(validation_alias=AliasChoices("AWS_REGION", "AWS_DEFAULT_REGION"), min_length=1)
    endpoint_url: str | None = Field(None, alias="AWS_ENDPOINT_URL", pattern=r"^https?://.+")
    tracing: bool = Field(False, alias="MANGO_TRACING")

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Reads the variables.

        Raises:
            SettingsError: one is missing or cannot be used.
        """
        # An empty variable is a missing one: templates cannot leave variables out.
        given = {name: value for name, value in environ.items() if value.strip()}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise SettingsError("; ".join(f"{_variable(one['loc'])}: {one['msg']}" for one in error.errors())) from None


class DrivingSettings(Settings):
    """For functions that start turns and ring for workers.

    Attributes:
        queue_prefix: of the environments' queues, `<prefix>-env-<environment>`.
        state_machine_arn: of the turn's state machine.
        dead_letters_arn: of the queue for rings that no worker could deal with; None keeps them where they are.
    """

    queue_prefix: str = Field(alias="MANGO_QUEUE_PREFIX", pattern=r"^[a-zA-Z0-9_-]{1,40}$")
    state_machine_arn: str = Field(alias="MANGO_STATE_MACHINE_ARN", pattern=r"^arn:[^:]+:states:[^:]*:[^:]*:.+")
    dead_letters_arn: str | None = Field(None, alias="MANGO_DEAD_LETTERS_ARN", pattern=r"^arn:[^:]+:sqs:[^:]*:[^:]*:.+")


class RoundSettings(DrivingSettings):
    """For the function that calls the model, whose other settings `mango.model.factory` reads.

    Attributes:
        model_secret_arn: of the secret with the model's credential; None where the model needs none.
    """

    model_secret_arn: str | None = Field(None, alias="MANGO_MODEL_SECRET_ARN", min_length=1)


class StreamSettings(Settings):
    """For the function, and the gateway, that serve streams.

    Attributes:
        stream_seconds: after so long the server ends a stream, at an event boundary; the client resumes.
    """

    stream_seconds: float = Field(840.0, alias="MANGO_STREAM_SECONDS", ge=1, le=86_400)


def _variable(place: tuple[Any, ...]) -> str:
    return str(place[0]) if place else "environment"
