"""`lazulite backup`: a copy of a location as it is at one moment, also while the service runs there."""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.backup_manifest import BackupError, copy_file, copy_tree, placed, write_list
from lazulite.cli.check import verified
from lazulite.cli.embedded_only import refuse_database
from lazulite.cli.errors import Refusal
from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb.checkpoint import make_checkpoint
from lazulite.engine.rocksdb.data_directory import Location
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.server.control_socket import ControlError, borrowed_checkpoint
from lazulite.settings.config import account_file, store_path


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Make a backup."""
    refuse_database(args, environ, "use pg_basebackup or pg_dump")
    location, target = args.location, args.destination
    try:
        count = _back_up(location, target)
    except (BackupError, EngineError, ControlError, AccountsError) as error:
        raise Refusal(error) from error
    print(f"{target}: {count} files")
    if args.verify:
        for line in verified(target, lambda text: print(f"lazulite: {text}", file=sys.stderr)):
            print(line)
    return 0


def _back_up(location: Path, target: Path) -> int:
    if not (store_path(location) / "CURRENT").is_file():
        raise BackupError(f"there is no store in {location}")
    with placed(target) as made:
        with _checkpoint(location) as source:
            files = {f"store/{name}": facts for name, facts in copy_tree(source, made / "store").items()}
        accounts = account_file(location)
        if accounts.path.exists():
            files["accounts.json"] = copy_file(accounts.path, made / "accounts.json")
            account_file(made).load()  # Refuses a damaged one.
        write_list(made, files)
    return len(files)


@contextmanager
def _checkpoint(location: Path) -> Iterator[Path]:
    """Yield the directory of a checkpoint: the running service's, or one of the store that is opened for it."""
    with borrowed_checkpoint(location) as borrowed:
        if borrowed is not None:
            yield borrowed
            return
    home = Location(store_path(location), RocksSettings())
    database = home.open()
    try:
        with tempfile.TemporaryDirectory(prefix="checkpoint.", dir=location) as directory:
            make_checkpoint(database, Path(directory) / "store")
            yield Path(directory) / "store"
    finally:
        home.close(database)
