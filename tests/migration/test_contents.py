"""Copies of the contents to which rows refer: under the same names, repeated after a break, compared byte by byte."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.content.contract import WINDOW_BYTES, ContentId, ContentStore, Owner
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.migration.compare import ComparedStore, PartComparison, StoreComparer
from lazulite.migration.copying import Timing, copy
from lazulite.migration.endpoint import Endpoint, MigrationError
from lazulite.migration.monotonic_clock import MonotonicClock
from lazulite.protocol.clock import system_clock
from tests.cli.note_store import REGISTRY, add_notes
from tests.engine.content.test_contract import STORES, get
from tests.fuzz.memory import MemoryEngine

from .stores import MemoryAccounts

TEXTS = {"a": b"first", "b": bytes(range(256)) * 3000, "empty": b""}


@dataclass
class Copying:
    """A source with notes, and an empty target."""

    source: Endpoint
    target: Endpoint
    contents: dict[str, ContentId]

    async def copy(self) -> None:
        clock = MonotonicClock(system_clock)
        await copy(self.source, self.target, REGISTRY, Timing(clock, lambda: 0.0), lambda _: None)

    async def compare(self) -> list[PartComparison]:
        source, target = (ComparedStore(each.engine, each.contents) for each in (self.source, self.target))
        comparer = StoreComparer(source, target, REGISTRY, lambda _: None)
        return [each async for each in comparer.run(None) if not each.equal]

    async def check(self) -> None:
        for name, content in self.contents.items():
            assert await get(self.target.contents, content, 0, len(TEXTS[name])) == TEXTS[name]


def endpoint(name: str, engine: Engine, contents: ContentStore) -> Endpoint:
    return Endpoint(name, engine, MemoryAccounts(), contents)


async def copying(source: ContentStore, target: ContentStore) -> Copying:
    engine = MemoryEngine(system_clock)
    contents = await add_notes(engine, source, TEXTS)
    return Copying(endpoint("source", engine, source), endpoint("target", MemoryEngine(system_clock), target), contents)


@pytest.fixture(name="target", params=["files", "memory", "postgres"])
async def _target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContentStore]:
    async with STORES[request.param](tmp_path / "target") as store:
        yield store
        await store.close()


@pytest.mark.parametrize("kind", ["files", "postgres"])
async def test_contents_are_copied_under_their_names(target: ContentStore, tmp_path: Path, kind: str) -> None:
    async with STORES[kind](tmp_path / "source") as source:
        case = await copying(source, target)
        await case.copy()
        await case.check()
        assert await case.compare() == []
        writer = await target.create(Owner(case.contents["a"].space, "new"))
        assert await writer.seal() not in case.contents.values()
        await source.close()


async def test_a_copy_that_broke_off_is_resumed(
    target: ContentStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ContentFiles(tmp_path / "source")
    case = await copying(source, target)
    create = target.create
    created: list[int | None] = []

    async def fail_later(owner: Owner, number: int | None = None) -> object:
        if created:
            raise EngineUnavailableError("the disk is full")
        created.append(number)
        return await create(owner, number)

    monkeypatch.setattr(target, "create", fail_later)
    with pytest.raises(EngineUnavailableError):
        await case.copy()
    monkeypatch.undo()
    await case.copy()
    await case.check()
    assert await case.compare() == []
    await source.close()


async def test_a_missing_content_is_an_error_before_its_rows(tmp_path: Path) -> None:
    case = await copying(ContentMemory(), ContentMemory())
    await case.source.contents.delete([case.contents["b"]])
    with pytest.raises(MigrationError, match="'b': there is no such content"):
        await case.copy()
    assert await case.target.engine.get(case.contents["a"].space, "a", "note") is None


async def test_contents_that_differ_are_a_difference() -> None:
    case = await copying(ContentMemory(), ContentMemory())
    await case.copy()
    content = case.contents["b"]
    writer = await case.target.contents.create(Owner(content.space, "b"), content.number)
    await writer.write(TEXTS["b"][:-1] + b"?")
    await writer.seal()
    [different] = await case.compare()
    assert different.part.space == content.space
    await case.target.contents.delete([content])
    assert len(await case.compare()) == 1


async def test_contents_that_several_rows_share_are_copied_once() -> None:
    case = await copying(ContentMemory(), ContentMemory())
    content = case.contents["b"]
    value = b"%d %d" % (content.number, case.contents["a"].number)
    await case.source.engine.commit(content.space, "b", changing(["second"], lambda *_: {"second": value}))
    await case.copy()
    assert await case.compare() == []
    assert await case.target.contents.length(content) == len(TEXTS["b"]) > WINDOW_BYTES
