"""The ends of a copy, opened: a location, or a database."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from lazulite.app.stderr import report
from lazulite.auth.accounts.engine_store import AccountRow
from lazulite.cli.backup_manifest import LIST
from lazulite.cli.errors import Refusal
from lazulite.engine.contract import Clock, LocationInUseError
from lazulite.engine.postgres.dsn import DatabaseUrl
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.migration.endpoint import FileAccounts, Store
from lazulite.settings.config import account_file, store_path
from lazulite.settings.database import password_of
from lazulite.settings.extras import require_extra

End: TypeAlias = Path | PostgresSettings


def end_at(place: Path | DatabaseUrl, environ: Mapping[str, str], variable: str) -> End:
    """Return an end as the command line names it; the variable, or its file, has a database's password.

    Raises:
        Refusal: the password cannot be read, or the extra `postgres` is not installed.
    """
    if isinstance(place, Path):
        return place.resolve()
    try:
        require_extra("postgres", "a database")
        return PostgresSettings(dsn=place.text, password=password_of(place, environ, variable=variable))
    except ValueError as error:
        raise Refusal(error) from None


def opened(end: End, clock: Clock, *, must_exist: bool) -> AbstractAsyncContextManager[Store]:
    """Open a store for exclusive use.

    Args:
        end: where it is.
        clock: for what is written.
        must_exist: whether to refuse to make one.

    Raises:
        Refusal: there is none, or it is no place for one, or in use.
        EngineError: it cannot be opened.
    """
    if isinstance(end, Path):
        return _location(end, clock, must_exist=must_exist)
    return _database(end, clock, must_exist=must_exist)


@asynccontextmanager
async def _location(location: Path, clock: Clock, *, must_exist: bool) -> AsyncIterator[Store]:
    if (location / LIST).exists():
        raise Refusal(f"{location} is a backup; copy it to a location with lazulite restore")
    if must_exist and not (store_path(location) / "CURRENT").is_file():
        raise Refusal(f"there is no store in {location}")
    try:
        engine = RocksEngine.open(store_path(location), clock)
    except LocationInUseError as error:
        raise Refusal(f"{error}; stop that first") from error
    try:
        yield Store(str(location), engine, FileAccounts(account_file(location)))
    finally:
        await engine.close()


@asynccontextmanager
async def _database(settings: PostgresSettings, clock: Clock, *, must_exist: bool) -> AsyncIterator[Store]:
    from lazulite.app.database import open_database  # noqa: PLC0415 - it needs an extra

    async with open_database(settings, report, clock, must_exist=must_exist) as engine:
        yield Store(engine.name, engine, AccountRow(engine, engine.name))
