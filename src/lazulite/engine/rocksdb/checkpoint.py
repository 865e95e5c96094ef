"""A checkpoint: a directory that holds a store as it was at one moment, made in little time whatever the size.

RocksDB links the files that never change again and copies the small others. What is in memory goes to files first,
while other threads run; the checkpoint itself keeps the interpreter's lock, a few milliseconds.
"""

from pathlib import Path

from rocksdict import Checkpoint, Rdict

from lazulite.engine.rocksdb.errors import STORE_ERRORS


def make_checkpoint(database: Rdict, path: Path) -> None:
    """Make a checkpoint of a database at `path`, which must not exist, on the same file system as the store.

    Nothing may be written to the database meanwhile that is not durable, lest the checkpoint has it.

    Raises:
        EngineError: it cannot be made.
    """
    with STORE_ERRORS:
        database.flush(wait=True)
        Checkpoint(database).create_checkpoint(str(path))
