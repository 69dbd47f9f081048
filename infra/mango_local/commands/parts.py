"""Steps that several commands take."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from mango.model.factory import ModelSettings
from mango_local.lock import DataDirUnusable, DataLock
from mango_local.profile import NoStore
from mango_local.roto import Roto, is_endpoint, read_endpoint


def model_settings(name: str | None) -> ModelSettings:
    """The model that the option names, else the environment."""
    return ModelSettings.from_environment({**os.environ, "MANGO_MODEL": name} if name else os.environ)


def start_store(stack: ExitStack, data_dir: Path, *, port: int | None, durable: bool) -> Roto:
    """Locks the data directory and starts the store; both end with the stack.

    Raises:
        AlreadyLocked, DataDirUnusable, StoreFailed: it does not start.
    """
    lock = DataLock(data_dir)
    lock.acquire()
    stack.callback(lock.release)
    store = Roto(data_dir, port=port, durable=durable)
    stack.callback(store.stop)
    try:
        # Sessions and digests of keys do not belong into a repository.
        (data_dir / ".gitignore").write_text("*\n")
        store.start()
    except OSError as error:
        raise DataDirUnusable(data_dir, error) from None
    return store


def store_endpoint(given: str | None, data_dir: Path) -> str:
    """The address of a store that runs already. Raises `NoStore`."""
    endpoint = given or read_endpoint(data_dir)
    if endpoint is None:
        raise NoStore(f"no store is known in {data_dir}: start `mango store` or `mango up` first, or give its --store")
    if not is_endpoint(endpoint):
        raise NoStore(f"{endpoint!r} is no address of a store: write http://host:port")
    return endpoint
