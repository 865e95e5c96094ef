"""A checkpoint: a directory that holds the store of one moment, made quickly whatever the store's size.

RocksDB links the immutable files and copies the small others. It first flushes its memory to files, while other threads
run. The checkpoint itself keeps the interpreter's lock for a few milliseconds.
"""

from pathlib import Path

from rocksdict import Checkpoint, Rdict

from lazulite.engine.rocksdb.errors import STORE_ERRORS


def make_checkpoint(database: Rdict, path: Path) -> None:
    """Make a checkpoint of a database at `path`, which must not exist, on the same file system as the store.

    The caller must keep undurable writes out of the database meanwhile, or the checkpoint would contain them.

    Raises:
        EngineError: it cannot be made.
    """
    with STORE_ERRORS:
        database.flush(wait=True)
        Checkpoint(database).create_checkpoint(str(path))
