"""How far a load is, kept where a process that is started again finds it."""

import json
import os
from pathlib import Path
from typing import NamedTuple, Protocol

from lazulite_patterns.bulk.sending import Failure
from lazulite_patterns.effects.tables import EntityKey


class State(NamedTuple):
    """How far a load is.

    Attributes:
        rows_done: the first rows of the source, all of which are done.
        failures: rows that failed so far.
    """

    rows_done: int = 0
    failures: tuple[Failure, ...] = ()


class Checkpoint(Protocol):
    """Keeps the state of one load."""

    def read(self) -> State:
        """Return the state; the first one if there is none yet."""

    def write(self, state: State) -> None:
        """Replace the state, so that a crash leaves the old one or the new one."""


class FileCheckpoint:
    """Keeps the state in a file. Another load takes another file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Take the path, whose folder is there."""
        self._path = Path(path)

    def read(self) -> State:
        """Return the state in the file."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return State()
        return State(found["rows_done"], tuple(_failure(each) for each in found["failures"]))

    def write(self, state: State) -> None:
        """Replace the file by a new one."""
        failures = [[each.number, each.key, each.reason] for each in state.failures]
        following = self._path.with_name(self._path.name + ".new")
        with following.open("w", encoding="utf-8") as file:
            json.dump({"rows_done": state.rows_done, "failures": failures}, file)
            file.flush()
            os.fsync(file.fileno())
        following.replace(self._path)


def _failure(found: tuple[int, list[str] | None, str]) -> Failure:
    number, key, reason = found
    return Failure(number, None if key is None else EntityKey(*key), reason)
