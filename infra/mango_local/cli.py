"""The command line of Mango's operator: `mango`."""

from __future__ import annotations

import typer

from mango_local.commands import deploy
from mango_local.commands.files import app as files
from mango_local.commands.gateway import gateway
from mango_local.commands.split import orchestrate, serve, store
from mango_local.commands.up import up

app = typer.Typer(
    name="mango",
    help="A self-hosted, durable platform for AI agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(up)
app.command()(serve)
app.command()(orchestrate)
app.command()(store)
app.command()(gateway)
app.add_typer(files, name="files")
app.command()(deploy.deploy)
app.command()(deploy.undeploy)
app.command()(deploy.package)
app.add_typer(deploy.keys)


@app.command()
def version() -> None:
    """Show the version."""
    from mango_local.commands.banner import product

    print(product())


def main() -> None:
    """Entry point."""
    app()
