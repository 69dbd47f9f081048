"""The functions, and what each of them is packaged from."""

from __future__ import annotations

from dataclasses import dataclass

from mango_local.deploy.errors import DeployFailed


@dataclass(frozen=True, slots=True)
class Function:
    """A Lambda function.

    Attributes:
        name: its logical id in the template.
        module: holds the handler.
        loads: packages of Mango whose modules it imports by names known at run time only.
        libraries: modules of others that such imports lead to.
        programs: scripts that are started, by their place.
        own_runtime: whether the module is a runtime of its own, in place of one that calls a handler in it.
    """

    name: str
    module: str
    loads: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    own_runtime: bool = False

    @property
    def handler(self) -> str:
        """As the template names it."""
        return self.module if self.own_runtime else f"{self.module}.handler"


FUNCTIONS = (
    Function("ApiFunction", "mango.handlers.api"),
    # The anthropic library asks for boto3 where it talks to Bedrock.
    Function("RoundFunction", "mango.handlers.round", loads=("mango.model.scripts",), libraries=("boto3",)),
    Function("TroubleFunction", "mango.handlers.trouble"),
    Function("SweepFunction", "mango.handlers.sweep"),
    Function("StreamFunction", "mango.handlers.stream", programs=("mango/handlers/stream-runtime",), own_runtime=True),
)

AWS_SERVICES = ("bedrock-runtime", "dynamodb", "kms", "s3", "secretsmanager", "sqs", "stepfunctions", "sts")
"""Whose descriptions go into a package. botocore knows 400 services, in 100 MB."""


def function(name: str) -> Function:
    """The function of this name. Raises `DeployFailed`."""
    for each in FUNCTIONS:
        if each.name == name:
            return each
    raise DeployFailed(f"there is no function {name!r}; there are {', '.join(each.name for each in FUNCTIONS)}")
