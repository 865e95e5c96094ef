"""Files that are read row by row, and positions in them at which reading goes on after a kill.

A position has a digest of all bytes before it. So a file that was changed there is noticed; what stands behind the
position may have changed or grown.
"""

import hashlib
import io
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple, Protocol

from lazulite.table.model.edm import Json
from lazulite.transfer.values import Entity

LINE_BYTES_MAX = 16 << 20
"""More than an entity has, with every character escaped."""
_CHUNK_BYTES = 1 << 20
_DIGEST_BYTES = 16

Position = Mapping[str, Json]
"""A place between two rows, for a checkpoint."""


class InputError(Exception):
    """A file cannot be read as rows. The text says why."""


class ChangedInputError(InputError):
    """A file differs from the one of a checkpoint."""


class Row(NamedTuple):
    """A row of a file."""

    number: int
    """From 1, without a header."""
    entity: Entity | None
    """None: the row is not an entity."""
    problem: str = ""
    """Why the row is no entity."""


class RowReader(Protocol):
    """Reads the rows of a file."""

    @property
    def size_bytes(self) -> int | None:
        """The length of the file; None: unknown."""
        ...

    @property
    def read_bytes(self) -> int:
        """How much of it has been read."""
        ...

    @property
    def types(self) -> Mapping[str, str]:
        """The type of each column for values without one; empty if the rows say all."""
        ...

    def rows(self) -> Iterator[Row]:
        """Yield the rows. Raises `InputError` and `OSError`."""
        ...

    def position(self) -> Position | None:
        """Return the place behind the last row; None if there is no place to go on from."""
        ...

    def resume(self, position: Position, row: int) -> None:
        """Go to a position, which is behind a row. Raises `ChangedInputError` and `OSError`."""
        ...


class InputLines:
    """The lines of a file, each with its end, as text. Bytes that are no UTF-8 raise `InputError`."""

    def __init__(self, file: IO[bytes], size_bytes: int | None) -> None:
        self.offset = 0
        self.size_bytes = size_bytes
        self._file = file
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    @classmethod
    def of_file(cls, file: IO[bytes]) -> "InputLines":
        """Return the lines of a file that is open at its beginning; a pipe has no length."""
        if not file.seekable():
            return cls(file, None)
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        return cls(file, size)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(LINE_BYTES_MAX + 1)
        if not line:
            raise StopIteration
        if len(line) > LINE_BYTES_MAX:
            raise InputError(f"a line is longer than {LINE_BYTES_MAX >> 20} MiB")
        self._digest.update(line)
        if not self.offset:
            self.offset = len(line)
            return self._text(line.removeprefix(BOM_UTF8))
        self.offset += len(line)
        return self._text(line)

    def _text(self, line: bytes) -> str:
        try:
            return line.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise InputError(f"the line that ends at byte {self.offset:,} is not UTF-8") from None

    def position(self) -> Position | None:
        """Return the place behind the last line; None in a pipe."""
        if self.size_bytes is None:
            return None
        return {"offset": self.offset, "digest": self._digest.hexdigest()}

    def resume(self, position: Position) -> None:
        """Go to a position.

        Raises:
            ChangedInputError: the bytes before it are others.
        """
        offset = position.get("offset")
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        left = offset if isinstance(offset, int) else -1
        self._file.seek(0)
        while left > 0 and (chunk := self._file.read(min(left, _CHUNK_BYTES))):
            digest.update(chunk)
            left -= len(chunk)
        if left != 0 or digest.hexdigest() != position.get("digest"):
            raise ChangedInputError("the part of the input that was imported has changed since")
        assert isinstance(offset, int)
        self.offset, self._digest = offset, digest
