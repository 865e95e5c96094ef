"""What a disk holds after a cut of power: a model of files and names, durable and not, that replays recorded calls.

What a cut leaves:

- Of a file's bytes: all that was written before the last sync that both began later and ended. Since then each sector
  of 512 bytes goes its own way: it has what it had at some moment after that sync, whatever its neighbours have. So
  do the file's size (a sector that never came, within the size, is zeros) and every other file.
- The bytes of files that are named in IN_ORDER survive in their order, as a first part without zeros behind.
- One sector of the whole disk, the one being written, may be torn at any byte: new before, old behind.
- Of the names in a directory, if the disk is *strict*: what the directory's own last sync made durable, and of the
  later creations, renames, links and deletions a first part, whatever became of the other directories. A sync of a
  new file does nothing for its name.
- If it is not: all names are kept in one journal, as ext4 and XFS do. Any sync makes all earlier changes of names
  durable, and of the later ones a first part is there.

A name that appears in another directory is durable with a sync of the one where it appears.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Union

from .recorder import Kind, Record

SECTOR_BYTES = 512
IN_ORDER = "MANIFEST-"
"""RocksDB takes a torn end of its MANIFEST for damage, unless it is merely short: see docs/reliability.md."""

Tree = dict[str, Union[bytes, "Tree"]]
"""A directory's contents by name: a file's bytes, or another directory."""


class Change(NamedTuple):
    """A change of a file's contents: bytes written at an offset, or (None) a size."""

    number: int
    at: int
    written: bytes | None

    def apply(self, content: bytearray) -> None:
        """Do it."""
        if self.written is None:
            del content[self.at :]
        grown = self.at + len(self.written or b"") - len(content)
        content.extend(bytes(max(0, grown)))
        content[self.at : self.at + len(self.written or b"")] = self.written or b""


@dataclass(eq=False)
class File:
    """A file: the name that it was made by, what is durable, and the changes since, oldest first."""

    durable: bytearray
    name: str = ""
    changes: list[Change] = field(default_factory=list)

    def sync(self, number: int) -> None:
        """Make the changes before a call durable."""
        while self.changes and self.changes[0].number < number:
            self.changes.pop(0).apply(self.durable)

    def now(self) -> bytes:
        """What a process reads."""
        return self.at_moments(lambda _: len(self.changes), len(self.changes))

    def at_moments(self, moment: Callable[[int], int], size_moment: int) -> bytes:
        """Contents where each sector, and the size, is as it was after its own count of changes."""
        content = bytearray(self.durable)
        size = len(content)
        for count, (_, at, written) in enumerate(self.changes, 1):
            end = at if written is None else at + len(written)
            if count <= size_moment:
                size = end if written is None else max(size, end)
            reach = len(content) if written is None else end
            content.extend(bytes(max(0, end - len(content))))
            for sector in range(at // SECTOR_BYTES, -(-reach // SECTOR_BYTES)):
                if count <= moment(sector):
                    low, high = max(at, sector * SECTOR_BYTES), min(reach, (sector + 1) * SECTOR_BYTES)
                    content[low:high] = bytes(high - low) if written is None else written[low - at : high - at]
        return bytes(content[:size].ljust(size, b"\0"))


@dataclass(eq=False)
class Directory:
    """A directory: its names as processes see them, and the durable ones."""

    names: "dict[str, File | Directory]" = field(default_factory=dict)
    durable: "dict[str, File | Directory]" = field(default_factory=dict)


class Renaming(NamedTuple):
    """A change of names, done wholly or not at all; in the last directory named, something may appear."""

    number: int
    names: tuple[tuple[Directory, str, File | Directory | None], ...]

    @property
    def where(self) -> Directory:
        """The directory that is to be synced."""
        return self.names[-1][0]

    def apply(self) -> None:
        """Make it durable."""
        for directory, name, node in self.names:
            if node is None:
                directory.durable.pop(name, None)
            else:
                directory.durable[name] = node


class Disk:
    """The files below a directory, from a moment when all of it was durable."""

    def __init__(self, root: Path, strict: bool) -> None:
        """Begin with what is there now, all durable."""
        self._path = root
        self._strict = strict
        self._inodes: dict[int, File | Directory] = {}
        self._renamings: list[Renaming] = []
        self._syncs: dict[int, File | Directory] = {}
        self._root = self._taken(root)

    def _taken(self, path: Path) -> Directory:
        directory = Directory()
        self._inodes[path.stat().st_ino] = directory
        for entry in path.iterdir():
            if entry.is_dir():
                directory.names[entry.name] = self._taken(entry)
            else:
                file = File(bytearray(entry.read_bytes()), entry.name)
                directory.names[entry.name] = self._inodes[entry.stat().st_ino] = file
        directory.durable = dict(directory.names)
        return directory

    # --- replaying

    def replay(self, records: Iterable[Record]) -> None:
        """Take all calls, in their order."""
        for _ in self.steps(records):
            pass

    def steps(self, records: Iterable[Record]) -> Iterator[int]:
        """Take calls, in their order; yield after each how many were taken."""
        for number, record in enumerate(records):
            self._take(number, record)
            yield number + 1

    def _take(self, number: int, record: Record) -> None:
        match record.kind:
            case Kind.CREATE:
                directory, name = self._place(record.first)
                node = self._inodes[record.inode] = File(bytearray(), name)
                self._rename(number, (directory, name, node))
            case Kind.MKDIR:
                made = self._inodes[record.inode] = Directory()
                self._rename(number, (*self._place(record.first), made))
            case Kind.UNLINK:
                self._rename(number, (*self._place(record.first), None))
            case Kind.RENAME | Kind.LINK:
                directory, name = self._place(record.first)
                gone = [(directory, name, None)] if record.kind == Kind.RENAME else []
                if name in directory.names:  # A socket is not.
                    self._rename(number, *gone, (*self._place(record.second), directory.names[name]))
            case Kind.WRITE:
                self._file(record.inode).changes.append(Change(number, record.number, record.first))
            case Kind.RESIZE:
                self._file(record.inode).changes.append(Change(number, record.number, None))
            case Kind.SYNC:
                self._syncs[number] = self._inodes[record.inode]
            case Kind.SYNCED:
                self._sync(record.number, self._syncs.pop(record.number))

    def _file(self, inode: int) -> File:
        file = self._inodes[inode]
        assert isinstance(file, File)
        return file

    def _place(self, path: bytes) -> tuple[Directory, str]:
        """Return the directory that a path's last name is in, and that name."""
        *parents, name = Path(path.decode()).relative_to(self._path).parts
        directory = self._root
        for parent in parents:
            below = directory.names[parent]
            assert isinstance(below, Directory)
            directory = below
        return directory, name

    def _rename(self, number: int, *names: tuple[Directory, str, File | Directory | None]) -> None:
        for directory, name, node in names:
            if node is None:
                directory.names.pop(name, None)
            else:
                directory.names[name] = node
        self._renamings.append(Renaming(number, names))

    def _sync(self, begun: int, node: File | Directory) -> None:
        if isinstance(node, File):
            node.sync(begun)
        left = []
        for renaming in self._renamings:
            if renaming.number < begun and (not self._strict or renaming.where is node):
                renaming.apply()
            else:
                left.append(renaming)
        self._renamings = left

    # --- what is there

    @property
    def syncing(self) -> bool:
        """Whether a sync has begun and not ended."""
        return bool(self._syncs)

    def unsynced(self, suffix: str) -> set[int]:
        """Return the numbers of the calls that changed files of such names, as they were made, and are not durable."""
        files = [node for node in self._inodes.values() if isinstance(node, File) and node.name.endswith(suffix)]
        return {change.number for file in files for change in file.changes}

    def now(self) -> Tree:
        """What processes see."""
        return _tree(self._root, lambda directory: directory.names, File.now)

    def synced(self) -> Tree:
        """What is certain to be there after a cut."""
        return _tree(self._root, lambda directory: directory.durable, lambda file: bytes(file.durable))

    def after_cut(self, chance: random.Random) -> Tree:
        """What may be there after a cut, of all possibilities one; the disk is of no use afterwards."""
        journals: dict[int, list[Renaming]] = {}
        for renaming in self._renamings:
            journals.setdefault(id(renaming.where) if self._strict else 0, []).append(renaming)
        for journal in journals.values():
            for renaming in journal[: chance.randint(0, len(journal))]:
                renaming.apply()
        names = _Unsynced()
        _tree(self._root, lambda directory: directory.durable, names.note)
        torn = chance.choice(names.files) if names.files else None
        survivors = {
            id(file): _beginning(file, chance)
            if file.name.startswith(IN_ORDER)
            else _survivor(file, chance, file is torn)
            for file in names.files
        }
        return _tree(
            self._root, lambda directory: directory.durable, lambda file: survivors.get(id(file), bytes(file.durable))
        )


class _Unsynced:
    """The files, each once, that have changes that are not durable."""

    def __init__(self) -> None:
        self.files: list[File] = []

    def note(self, file: File) -> bytes:
        if file.changes and file not in self.files:
            self.files.append(file)
        return b""


def _beginning(file: File, chance: random.Random) -> bytes:
    """Contents after a cut as of one moment, or from one to the next."""
    moment = chance.randint(0, len(file.changes))
    content = file.at_moments(lambda _: moment, moment)
    size_before = len(file.at_moments(lambda _: 0, max(0, moment - 1)))
    return content[: chance.randint(min(size_before, len(content)), len(content))]


def _survivor(file: File, chance: random.Random, torn: bool) -> bytes:
    """Contents after a cut: nothing new, everything, all as of one moment, or every sector as of its own."""
    last = len(file.changes)
    one = chance.choice([0, last, chance.randint(0, last), None])
    moments: defaultdict[int, int] = defaultdict(lambda: chance.randint(0, last) if one is None else one)
    size_moment = chance.randint(0, last) if one is None else one
    content = file.at_moments(moments.__getitem__, size_moment)
    if not torn:
        return content
    change = chance.choice(file.changes)
    cut = change.at + chance.randrange(len(change.written or b"") or 1)
    sector = cut // SECTOR_BYTES
    before = chance.randint(0, moments[sector])
    older = file.at_moments(lambda at: before if at == sector else moments[at], size_moment)
    return content[:cut] + older[cut:]


def _tree(
    directory: Directory,
    names: "Callable[[Directory], Mapping[str, File | Directory]]",
    contents: Callable[[File], bytes],
) -> Tree:
    return {
        name: _tree(node, names, contents) if isinstance(node, Directory) else contents(node)
        for name, node in names(directory).items()
    }


def read_tree(path: Path) -> Tree:
    """Return what is below a directory, sockets left out."""
    return {
        entry.name: read_tree(entry) if entry.is_dir() else entry.read_bytes()
        for entry in path.iterdir()
        if entry.is_dir() or entry.is_file()
    }


def write_tree(path: Path, tree: Tree) -> None:
    """Put files and directories into a directory, which must be empty."""
    for name, content in tree.items():
        if isinstance(content, bytes):
            (path / name).write_bytes(content)
            (path / name).chmod(0o600)
        else:
            (path / name).mkdir(mode=0o700)
            write_tree(path / name, content)
