"""`mango deploy`, `mango undeploy`, `mango package` and `mango api-key`: Mango on AWS, and on emulators of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mango_local.commands import options

if TYPE_CHECKING:
    from mango_local.deploy.state import Deployment

DEFAULT_FOLDER = Path(".mango/deployment")
LOCAL_STACK, AWS_STACK = "mango-local", "mango"


class Where(StrEnum):
    """Where to."""

    AWS = "aws"
    LOCAL = "local"


To = Annotated[Where, typer.Option("--to", help="aws, or local for an emulator.")]
StackName = Annotated[str | None, typer.Option("--stack", help="Name of the stack; at most 40 characters.")]
Region = Annotated[str | None, typer.Option("--region", help="Region; else AWS_REGION, else us-east-1.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--parameter", metavar="NAME=VALUE", help="A parameter of template.yaml; repeatable."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before changing an AWS account.")]
Port = Annotated[
    int | None, typer.Option("--port", min=1, max=65535, help="Of a MiniStack to start; else 4566, or any free one.")
]
Folder = Annotated[Path, typer.Option("--deployment", help="Where a local deployment is remembered.")]


@contextmanager
def told() -> Iterator[None]:
    """Turns what a user can put right into one line and exit code 1."""
    from mango.model.factory import ModelSettingsError
    from mango_local.access import KeyRefused
    from mango_local.deploy.errors import DeployFailed

    try:
        yield
    except (DeployFailed, KeyRefused, ModelSettingsError) as error:
        print(f"mango: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def deploy(
    to: To = Where.AWS,
    stack: StackName = None,
    region: Region = None,
    parameter: Parameters = None,
    model: options.ModelName = None,
    port: Port = None,
    deployment: Folder = DEFAULT_FOLDER,
    yes: Yes = False,
) -> None:
    """Put Mango on AWS, or on an emulator: AWS_ENDPOINT_URL or LOCALSTACK_HOST, else MiniStack, which is started."""
    with told():
        if to is Where.LOCAL:
            _local(stack or LOCAL_STACK, port, deployment, model, _pairs(parameter))
        else:
            _aws(stack or AWS_STACK, region, _pairs(parameter), yes)


def undeploy(deployment: Folder = DEFAULT_FOLDER) -> None:
    """Remove a local deployment with its data, and end the MiniStack that was started for it."""
    with told():
        from mango_local.deploy.local import undeploy as remove

        if not remove(deployment, _say):
            _say(f"there is no local deployment in {deployment}")


def package(
    function: Annotated[str, typer.Argument(help="Logical id of a function in template.yaml.")],
    into: Annotated[Path, typer.Option("--into", help="Folder to put its files into.")],
) -> None:
    """Package one function for Lambda; `sam build` calls this."""
    with told():
        from mango_local.deploy.package import build
        from mango_local.deploy.plan import function as named
        from mango_local.deploy.targets import on_aws

        (built,) = build([named(function)], on_aws())
        built.unpack(into)
        _say(f"{function}: {built.size / 1e6:.1f} MB, with {', '.join(built.holds)}")


keys = typer.Typer(name="api-key", help="Keys of a deployment on AWS.", no_args_is_help=True)


@keys.command()
def create(
    stack: Annotated[str, typer.Option("--stack", help="Name of the stack.")] = AWS_STACK,
    region: Region = None,
    label: Annotated[str, typer.Option("--label", help="What the key is for.")] = "first",
) -> None:
    """Make a key of the default workspace, with AWS credentials that may write the table. It is shown once."""
    with told():
        from mango_local.deploy import aws, endpoint
        from mango_local.deploy.first_key import create_first_key

        where = region or endpoint.region()
        print(create_first_key(where, aws.outputs(stack, where)["TableName"], label))


def _local(stack: str, port: int | None, folder: Path, model: str | None, parameters: dict[str, str]) -> None:
    from mango_local.access import bootstrap_key
    from mango_local.commands.parts import model_settings
    from mango_local.deploy.local import Wanted
    from mango_local.deploy.local import deploy as apply

    key = bootstrap_key()
    wanted = Wanted(folder, stack, port, model_settings(model), parameters)
    shown = key.token if key.development else '"$MANGO_API_KEY"'
    _show(apply(wanted, key, _say), folder, shown)


def _aws(stack: str, region: str | None, parameters: dict[str, str], yes: bool) -> None:
    from mango_local.deploy import aws, endpoint, translation

    where = region or endpoint.region()
    sam = aws.find_sam()
    account = aws.account(where)
    lines = aws.summary(translation.read_template())
    _say(f"The stack {stack} in account {account}, {where}, will hold (docs/deploy.md tells what it costs):", *lines)
    if not yes:
        typer.confirm("Create or update it?", abort=True)
    aws.deploy(sam, stack, where, [f"{name}={value}" for name, value in parameters.items()])
    url = aws.outputs(stack, where)["ApiUrl"]
    _say(
        "",
        f"API URL: {url}",
        "",
        "There is no key yet. Make the first one, and use it with the stock client:",
        f"  export ANTHROPIC_API_KEY=$(mango api-key create --stack {stack} --region {where})",
        f"  export ANTHROPIC_BASE_URL={url}",
    )


def _show(deployed: Deployment, folder: Path, key: str) -> None:
    from mango_local.deploy.state import GATEWAY_FILE

    _say(
        "",
        f"API URL: {deployed.api_url}",
        "",
        "Emulators cannot stream, so clients go through a small gateway that can. Leave it running:",
        f"  env $(cat {folder / GATEWAY_FILE}) mango gateway",
        "and use it with the stock client:",
        f"  export ANTHROPIC_BASE_URL=http://127.0.0.1:{options.DEFAULT_PORT}",
        f"  export ANTHROPIC_API_KEY={key}",
        "",
        "Remove it again: mango undeploy",
    )


def _pairs(given: list[str] | None) -> dict[str, str]:
    from mango_local.deploy.errors import DeployFailed

    pairs = {}
    for each in given or []:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise DeployFailed(f"--parameter {each!r}: write NAME=VALUE")
        pairs[name] = value
    return pairs


def _say(*lines: str) -> None:
    print("\n".join(lines), flush=True)
