"""Power cuts of the content store: what was sealed is there, whole, and what has no row goes.

One process works on a store. It notes what its rows would be in a file, whose writes are recorded in their order with
all others. Then the power is cut after any of its calls.
"""

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from copy import deepcopy
from pathlib import Path

import pytest

from lazulite.engine.content import generations, space_files
from lazulite.engine.content.contract import WINDOW_BYTES, ContentId, Owner
from lazulite.engine.content.files import ContentFiles

from .disk import Disk, Tree, write_tree
from .recorder import COMPILER, Kind, Record, Recorder, compiled, compiler_missing

NOTES = "notes"
STEPS = 40
KEPT_SHARE = 0.8
"""Of the copies."""
CUTS = 80
FILES_MAX = 3
SPACES = range(5, 100)

pytestmark = pytest.mark.skipif(compiler_missing(), reason=f"there is no {COMPILER} to compile the recorder with")


def content_of(content: ContentId) -> bytes:
    """Return the bytes of a content: they follow from its number."""
    return bytes([content.number % 251 + 1]) * (content.number * 977 % 3000)


class Rows:
    """What a service would have committed."""

    def __init__(self) -> None:
        self.present: dict[ContentId, str] = {}
        self.first: dict[ContentId, ContentId] = {}
        """Of a copy: the content that has its bytes by its number."""
        self.gone: set[ContentId] = set()
        self.dropped: set[int] = set()
        self.to_drop: set[int] = set()

    def read(self, notes: bytes) -> None:
        for line in notes.decode().splitlines():
            match line.split():
                case ["put", space, number, owner]:
                    self.present[ContentId(int(space), int(number))] = owner
                case ["copy", space, number, owner, *source]:
                    content, first = ContentId(int(space), int(number)), ContentId(*map(int, source))
                    self.present[content] = owner
                    self.first[content] = self.first.get(first, first)
                case ["delete", space, number]:
                    content = ContentId(int(space), int(number))
                    del self.present[content]
                    self.gone.add(content)
                case ["deleted", space, number]:
                    self.gone.remove(ContentId(int(space), int(number)))
                case ["dropped", space]:
                    self.to_drop.remove(int(space))
                case ["drop", space]:
                    self.dropped.add(int(space))
                    self.to_drop.add(int(space))
                    self.present = {each: owner for each, owner in self.present.items() if each.space != int(space)}

    async def references(self, owner: Owner) -> Collection[ContentId]:
        return {each for each, name in self.present.items() if (each.space, name) == owner}


def set_files_max(files_max: int) -> None:
    for module in (generations, space_files):
        module.__dict__["FILES_MAX"] = files_max  # A constant, which the second module has imported by its name.


async def work(root: Path, seed: int) -> None:
    """Change a store, and note each row before anything depends on it."""
    chance, rows = random.Random(seed), Rows()
    notes = os.open(root / NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(line: str) -> None:
        os.write(notes, f"{line}\n".encode())
        rows.read(line.encode())

    store = ContentFiles(root / "content")
    for step in range(STEPS):
        spaces = [space for space in SPACES if space not in rows.dropped][:2]
        match chance.choice(
            ["put"] * 4
            + ["copy"] * 4
            + ["delete"] * 2
            + ["discard"] * 4
            + ["undecided", "restart"]
            + ["drop"] * (step > 20)
        ):
            case "delete" if rows.present:
                content = chance.choice(sorted(rows.present))
                note(f"delete {content.space} {content.number}")
                await store.delete([content])
                note(f"deleted {content.space} {content.number}")
            case "copy" if rows.present:
                source = chance.choice(sorted(rows.present))
                owner = Owner(spaces[-1], chance.choice("ab"))
                content = await store.copy(source, owner)
                if chance.random() < KEPT_SHARE:
                    note(f"copy {content.space} {content.number} {owner.partition} {source.space} {source.number}")
                    store.keep(content)
            case "restart":
                await store.close()
                store = ContentFiles(root / "content")
                await store.sweep(rows.references)
            case "drop":
                note(f"drop {spaces[0]}")
                await store.drop(spaces[0])
                note(f"dropped {spaces[0]}")
            case fate:
                await put(store, Owner(spaces[-1], chance.choice("ab")), fate, note)
    await store.close()


async def put(store: ContentFiles, owner: Owner, fate: str, note: Callable[[str], None]) -> None:
    """Write a content. Its bytes follow from its number, which is known when the first file of a generation is."""
    writer = await store.create(owner)
    if fate == "discard":
        await writer.write(bytes(WINDOW_BYTES))  # So that there is a file.
        await writer.discard()
        return
    await writer.write(content_of(ContentId(owner.space, writer._number)))
    content = await writer.seal()
    if fate != "undecided":
        note(f"put {content.space} {content.number} {owner.partition}")
        store.keep(content)


@pytest.fixture(name="library", scope="module")
def _library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("recorder"))


@pytest.fixture(autouse=True)
def _few_files() -> Iterator[None]:
    before = generations.FILES_MAX
    set_files_max(FILES_MAX)
    yield
    set_files_max(before)


def recorded(library: Path, tmp_path: Path, root: Path, seed: int) -> list[Record]:
    """Return the calls of a process that worked on an empty directory."""
    recorder = Recorder(library, root, tmp_path)
    command = [sys.executable, "-m", __name__, str(root), str(seed)]
    done = subprocess.run(
        command, env={**os.environ, **recorder.variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    records = list(recorder.records())
    recorder.close()
    return records


def noted(records: Sequence[Record]) -> bytes:
    """Return what was noted, from the calls that were made."""
    inode = next((each.inode for each in records if each.kind is Kind.CREATE and each.first.endswith(b"/notes")), None)
    return b"".join(each.first for each in records if each.kind is Kind.WRITE and each.inode == inode)


async def check(path: Path, rows: Rows) -> None:
    """Start on what a cut left: every row has its content, and there is no other."""
    store = ContentFiles(path / "content")
    await store.sweep(rows.references)
    for space in rows.to_drop:
        await store.drop(space)
    await store.delete(rows.gone)
    for content in rows.present:
        expected = content_of(rows.first.get(content, content))
        async with aclosing(store.read(content, 0, len(expected))) as pieces:
            assert b"".join([piece async for piece in pieces]) == expected
    await store.close()


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_cut(library: Path, tmp_path: Path, seed: int, *, strict: bool) -> None:
    root = tmp_path / "root"
    root.mkdir()
    empty = Disk(root, strict)
    records = recorded(library, tmp_path, root, seed)
    chance = random.Random(seed)
    for cut in range(CUTS):
        count = chance.randint(1, len(records))
        found = tmp_path / f"cut-{cut}"
        found.mkdir()
        write_tree(found, left(empty, root, records[:count], chance))
        rows = Rows()
        rows.read(noted(records[:count]))
        asyncio.run(check(found, rows))
        paths = {file for file in (found / "content").rglob("*") if file.is_file() and file.suffix != ".process"}
        files = {str(file.relative_to(found / "content")) for file in paths}
        owners = {file for file in files if file.endswith(".owner")}
        assert {file.removesuffix(".owner") for file in owners} <= files
        assert len(files - owners) == len(rows.present), (cut, count, files, rows.present)


def left(empty: Disk, root: Path, records: Sequence[Record], chance: random.Random) -> Tree:
    """Return what a cut may leave after some calls, but for the notes."""
    disk = deepcopy(empty)
    disk.replay(records)
    tree = disk.after_cut(chance)
    tree.pop(NOTES, None)
    return tree


if __name__ == "__main__":
    set_files_max(FILES_MAX)
    asyncio.run(work(Path(sys.argv[1]), int(sys.argv[2])))
