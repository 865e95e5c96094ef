"""A server that scans row by row, with a turn of the loop between two, and that flushes and compacts all the time.

It keeps every promise: `python -m tests.torture.linearizability.narrow serve …`.
"""

import sys
from functools import partial

from lazulite.cli import main
from lazulite.engine.rocksdb import engine as rocksdb
from lazulite.engine.rocksdb.options import RocksSettings

if __name__ == "__main__":
    vars(rocksdb)["RocksSettings"] = partial(RocksSettings, slice_rows_max=1, write_buffer_bytes=256 << 10)
    sys.exit(main())
