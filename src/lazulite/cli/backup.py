"""`lazulite backup`: copy a location as of one moment, also while the server runs."""

import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lazulite.app.checkpoints import borrowed_checkpoint
from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.backup_manifest import BackupError, atomic_directory, copy_file, copy_tree, write_manifest
from lazulite.cli.check import tell_undamaged, verify_location
from lazulite.cli.errors import CommandError
from lazulite.cli.progress_line import ProgressLine
from lazulite.cli.selected_database import reject_database
from lazulite.cli.summary import CommandOutput
from lazulite.control.command import ControlError
from lazulite.engine.content.backup import link_files
from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb.data_directory import DataDirectory, make_checkpoint
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.migration.journal import JOURNAL_KEY, UNFINISHED
from lazulite.settings.config import account_file, content_path, store_path


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Make a backup, print its number of files, and verify it if `--verify` asks for that."""
    reject_database(args, environ, "use pg_basebackup or pg_dump")
    location, target = args.location, args.destination
    with CommandOutput.from_args(args) as output:
        try:
            count = _back_up(location, target, output.progress)
        except (BackupError, EngineError, ControlError, AccountsError) as error:
            raise CommandError(error) from error
        output.tell(f"{target}: {count} files", {"backup": str(target), "files": count})
        if args.verify:
            tell_undamaged(output, verify_location(target, output.progress.write_note, output.progress))
    return 0


def _back_up(location: Path, target: Path, progress: ProgressLine) -> int:
    if not (store_path(location) / "CURRENT").is_file():
        raise BackupError(f"there is no store in {location}")
    with atomic_directory(target) as staging:
        with _checkpoint(location) as source:
            files = copy_tree(source, staging, progress)
        accounts = account_file(location)
        if accounts.path.exists():
            files["accounts.json"] = copy_file(accounts.path, staging / "accounts.json")
            account_file(staging).load()  # Raises AccountsError if the file is damaged.
        write_manifest(staging, files)
    return len(files)


@contextmanager
def _checkpoint(location: Path) -> Iterator[Path]:
    """Yield the directory of a checkpoint. The running server makes it; without one, the store is opened for it.

    Raises:
        BackupError: the location is an unfinished copy, of which no backup could be restored.
    """
    with borrowed_checkpoint(location) as borrowed:
        if borrowed is not None:
            yield borrowed
            return
    data_directory = DataDirectory(store_path(location), RocksSettings())
    database = data_directory.open()
    try:
        if database.get(JOURNAL_KEY) is not None:
            raise BackupError(f"{location} is {UNFINISHED}")
        with tempfile.TemporaryDirectory(prefix="checkpoint.", dir=location) as directory:
            make_checkpoint(database, store_path(Path(directory)))
            link_files(content_path(location), content_path(Path(directory)))
            yield Path(directory)
    finally:
        data_directory.close(database)
