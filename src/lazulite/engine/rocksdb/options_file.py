"""A check of RocksDB's options file before the binding reads it.

The binding reads the newest options file when it opens a store, though it is given every option anew. If the name of a
section is damaged, the process ends with a segmentation fault. The store needs none of these files.
"""

import re
from pathlib import Path

from lazulite.engine.contract import StoreUnusableError

_NAME = re.compile(r"OPTIONS-(\d+)")
_SECTIONS = [b"[Version]", b"[DBOptions]", b'[CFOptions "default"]', b'[TableOptions/BlockBasedTable "default"]']


def reject_damaged_options(path: Path) -> None:
    """Check the newest options file of the store in a directory.

    Raises:
        StoreUnusableError: it is damaged such that opening would end the process, or cannot be read.
    """
    try:
        numbers = [(int(match[1]), file) for file in path.iterdir() if (match := _NAME.fullmatch(file.name))]
        if not numbers:
            return
        newest = max(numbers)[1]
        sections = [line.strip() for line in newest.read_bytes().split(b"\n") if b"[" in line[:3]]
    except FileNotFoundError:
        return  # No store yet.
    except OSError as error:
        raise StoreUnusableError(f"{path} cannot be read: {error.strerror}") from error
    if sections != _SECTIONS:
        raise StoreUnusableError(f"{newest} is damaged; the store does not need it, so remove that file")
