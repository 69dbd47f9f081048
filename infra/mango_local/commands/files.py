"""`mango files`: a workspace's files, by the API of any deployment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from mango_worker.transfer import Transfer

app = typer.Typer(help="Upload, download, list and delete files of a workspace.", no_args_is_help=True)

BaseUrl = Annotated[str, typer.Option("--base-url", envvar="MANGO_BASE_URL", metavar="URL", help="Where the API is.")]
DEFAULT_BASE_URL = "http://127.0.0.1:8080"


@app.command()
def upload(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="The files.", exists=True, dir_okay=False)],
    mime_type: Annotated[str | None, typer.Option("--mime-type", help="Media type; else by the name.")] = None,
    expires_in: Annotated[
        int | None, typer.Option("--expires-in", metavar="SECONDS", help="Remove it after so long.")
    ] = None,
    base_url: BaseUrl = DEFAULT_BASE_URL,
) -> None:
    """Store files; prints the id of each."""
    with _transfer(base_url) as transfer:
        for path in paths:
            with _progress(path.name, path.stat().st_size) as advance:
                made = transfer.upload(path, mime_type=mime_type, expires_in_seconds=expires_in, progress=advance)
            print(made["id"], flush=True)


@app.command()
def download(
    file_id: Annotated[str, typer.Argument(metavar="FILE_ID")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Where to; else by its name, here.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    base_url: BaseUrl = DEFAULT_BASE_URL,
) -> None:
    """Fetch a file's content; prints where it is."""
    with _transfer(base_url) as transfer:
        known = transfer.retrieve(file_id)
        target = output or Path(Path(known["filename"]).name)
        if target.is_dir():
            target = target / Path(known["filename"]).name
        if target.exists() and not force:
            _fail(f"{target} is there already; --force replaces it")
        with _progress(target.name, known["size_bytes"]) as advance:
            transfer.download(file_id, target, progress=advance)
        print(target, flush=True)


@app.command("list")
def list_files(base_url: BaseUrl = DEFAULT_BASE_URL) -> None:
    """Show all files, newest first: id, size in bytes, time of creation, name."""
    from mango_worker.transfer import one_line

    with _transfer(base_url) as transfer:
        for one in transfer.list():
            print(f"{one['id']}  {one['size_bytes']:>11}  {one['created_at'][:19]}Z  {one_line(one['filename'], 255)}")


@app.command()
def delete(
    file_ids: Annotated[list[str], typer.Argument(metavar="FILE_ID...")], base_url: BaseUrl = DEFAULT_BASE_URL
) -> None:
    """Remove files for good."""
    with _transfer(base_url) as transfer:
        for file_id in file_ids:
            transfer.delete(file_id)
            print(file_id, flush=True)


@contextmanager
def _transfer(base_url: str) -> Iterator[Transfer]:
    """The API, with the key of the environment; turns what a user can put right into one line and exit code 1."""
    from mango_worker.transfer import Transfer, WorkerError

    key = os.environ.get("MANGO_API_KEY", "").strip()
    if not key:
        _fail("MANGO_API_KEY is not set: a workspace key, as `mango up` prints it")
    if not base_url.startswith(("http://", "https://")):
        _fail(f"{base_url!r} is no base URL: write http://host:port")
    try:
        transfer = Transfer(base_url, key)
        try:
            yield transfer
        finally:
            transfer.close()
    except (WorkerError, OSError) as error:
        _fail(str(error))


@contextmanager
def _progress(name: str, size: int) -> Iterator[Any]:
    """A bar on standard error while somebody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
    from rich.text import Text

    console = Console(file=sys.stderr)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task(Text(name).markup, total=size)
        yield lambda count: bar.advance(task, count)


def _fail(message: str) -> NoReturn:
    print(f"mango: {message}", file=sys.stderr)
    raise typer.Exit(1)
