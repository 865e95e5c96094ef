"""The ends of a copy, opened: a location, or a database, as the command line names them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lazulite.cli.backup_files import LIST
from lazulite.cli.refusal import Refusal
from lazulite.config import account_file, store_path
from lazulite.engine.contract import Clock, LocationInUseError
from lazulite.engine.rocksdb import RocksEngine
from lazulite.transfer.store import FileAccounts, Store


@asynccontextmanager
async def opened(address: str, clock: Clock, *, must_exist: bool) -> AsyncIterator[Store]:
    """Yield a store, which nobody else may use meanwhile.

    Args:
        address: a location.
        clock: for what is written.
        must_exist: whether to refuse to make one.

    Raises:
        Refusal: there is none, or it is no place for one, or in use.
        EngineError: it cannot be opened.
    """
    location = Path(address)
    name = _checked(location, must_exist=must_exist)
    try:
        engine = RocksEngine.open(store_path(location), clock)
    except LocationInUseError as error:
        raise Refusal(f"{error}; stop that first") from error
    try:
        yield Store(name, engine, FileAccounts(account_file(location)))
    finally:
        await engine.close()


def same_place(one: str, other: str) -> bool:
    """Say whether two addresses mean one store."""
    return Path(one).resolve() == Path(other).resolve()


def _checked(location: Path, *, must_exist: bool) -> str:
    """Return a location's name."""
    if (location / LIST).exists():
        raise Refusal(f"{location} is a backup; lazulite restore makes a location of it")
    if must_exist and not (store_path(location) / "CURRENT").is_file():
        raise Refusal(f"there is no store in {location}")
    return str(location.resolve())
