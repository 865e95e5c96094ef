"""The directories of one space: generations of files, open until every file of theirs is decided.

Invariants: a generation has at most `FILES_MAX` files, and its number is never used again. Its directory is called
`{number}.open` while a file of it may be undecided, and `{number}` afterwards. So after a crash only open generations
must be searched for files without a row. A generation is filled by one process, whose slot its number tells
(`process_slots`): each slot has the numbers of one remainder, and needs none of the others to find the next.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from lazulite.engine.content.process_slots import SLOTS_MAX
from lazulite.engine.durable_files import make_private, sync_directory

FILES_MAX = 4096
_OPEN = ".open"


class Generation:
    """A generation that this process fills.

    Args:
        number: its number.
        path: of its directory, which exists.
    """

    def __init__(self, number: int, path: Path) -> None:
        self.number = number
        self.path = path
        self.undecided: set[int] = set()
        """The numbers of contents whose fate is open."""
        self._allotted = 0

    @property
    def is_full(self) -> bool:
        """Whether it takes no more files."""
        return self._allotted == FILES_MAX

    def allot(self) -> int:
        """Return the number of a new content."""
        number = self.number * FILES_MAX + self._allotted
        self._allotted += 1
        self.undecided.add(number)
        return number


def file_name(number: int) -> str:
    """Return the name of a content's file in its generation."""
    return f"{number % FILES_MAX:03x}"


def candidates(space: Path, number: int) -> tuple[Path, Path, Path]:
    """Return the paths at which to look for a content's file, in this order.

    The first one is the last one, too: its directory may be renamed between two attempts, in this direction only.
    """
    generation, name = number // FILES_MAX, file_name(number)
    settled = space / str(generation) / name
    return settled, space / f"{generation}{_OPEN}" / name, settled


def begin(space: Path, slot: int) -> Generation:
    """Make a new generation of a process, durably. It blocks.

    Raises:
        OSError: it cannot be made.
    """
    number = max((number for number, _ in _generations(space) if slot_of(number) == slot), default=slot - SLOTS_MAX)
    path = space / f"{number + SLOTS_MAX}{_OPEN}"
    make_private(path)
    remove_if_empty(space, number)
    return Generation(number + SLOTS_MAX, path)


def slot_of(number: int) -> int:
    """Return the slot of the process that filled a generation."""
    return number % SLOTS_MAX


def open_generations(space: Path) -> list[tuple[int, Path]]:
    """Return the numbers and the directories of the generations that are open. It blocks."""
    return [(number, path) for number, path in _generations(space) if path.suffix == _OPEN]


def numbers_in(generation: Path) -> set[int]:
    """Return the numbers of the contents that have a file in a directory; other files are passed over. It blocks."""
    first, numbers = int(generation.stem) * FILES_MAX, set()
    with contextlib.suppress(FileNotFoundError):  # Its space was dropped meanwhile.
        for entry in os.scandir(generation):
            with contextlib.suppress(ValueError):
                numbers.add(first + int(Path(entry.name).stem, 16))
    return numbers


def settle(path: Path) -> None:
    """Rename an open generation, if it still is one. It blocks. A power cut may undo it, which costs a search.

    Its names are synced first: a file that was deleted there must not come back in a generation that is not searched.

    Raises:
        OSError: it cannot be renamed.
    """
    with contextlib.suppress(FileNotFoundError):
        sync_directory(path)
        path.rename(path.with_suffix(""))


def sync(space: Path, number: int) -> None:
    """Make the names in a generation durable, under whichever name it has; none needs that if it is gone. It blocks.

    Raises:
        OSError: they may not be durable.
    """
    for name in (str(number), f"{number}{_OPEN}", str(number)):
        with contextlib.suppress(FileNotFoundError):
            sync_directory(space / name)


def remove_if_empty(space: Path, number: int) -> None:
    """Remove the directory of a generation that is settled, and not the last one of its slot. It blocks.

    The last one stays, because its number must not be used again.
    """
    slot = slot_of(number)
    if max((other for other, _ in _generations(space) if slot_of(other) == slot), default=number) > number:
        with contextlib.suppress(OSError):
            (space / str(number)).rmdir()


def _generations(space: Path) -> Iterator[tuple[int, Path]]:
    if not space.is_dir():
        return
    for entry in os.scandir(space):
        stem = entry.name.removesuffix(_OPEN)
        if stem.isdecimal():
            yield int(stem), Path(entry.path)
