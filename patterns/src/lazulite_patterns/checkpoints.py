"""Where a long run keeps how far it is, so that another process goes on after a crash."""

import os
from pathlib import Path
from typing import Protocol


class Checkpoint(Protocol):
    """A place for one text: a file, a row, a variable."""

    def load(self) -> str | None:
        """Return the text; None if there is none."""

    def save(self, text: str | None) -> None:
        """Keep a text instead of the one before; None when nothing is to be gone on with."""


class FileCheckpoint:
    """A file, which is replaced at once: a crash leaves the text before or the new one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Take the path of the file. It is absent when nothing is to be gone on with."""
        self._path = Path(path)

    def load(self) -> str | None:
        """Return the text; None if there is no file."""
        try:
            return self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def save(self, text: str | None) -> None:
        """Replace the file; remove it for None."""
        if text is None:
            self._path.unlink(missing_ok=True)
            return
        beside = self._path.with_name(self._path.name + ".new")
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
