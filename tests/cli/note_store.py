"""A location with rows that refer to contents: notes, each of which has one."""

from pathlib import Path

from lazulite.app.registry import SPACES
from lazulite.engine.commit import changing
from lazulite.engine.content.contract import ContentId, ContentStore, Owner
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.records.spaces import CatalogFormat, ReportNouns, Space, SpaceAllocator, Spaces
from lazulite.settings.config import content_path, store_path

NOTEBOOKS = 900

NOTEBOOK = CatalogFormat(
    ReportNouns("notebook", "notebooks", "notes"),
    lambda row, value: (int(value), row),
    lambda *_: None,
    contents=lambda space, _, value: {ContentId(space, int(number)): None for number in value.split()},
)
REGISTRY = Spaces(
    *SPACES, Space(number=NOTEBOOKS, owner="notes", title="the list of notebooks", copied=True, catalog=NOTEBOOK)
)
"""Of all services, and the one of notes."""


async def add_notes(engine: Engine, contents: ContentStore, texts: dict[str, bytes]) -> dict[str, ContentId]:
    """Make a notebook with a note for each text; return their contents."""
    space = await SpaceAllocator(engine).allocate()
    await engine.commit(NOTEBOOKS, "account", changing([f"n{space}"], lambda *_: {f"n{space}": b"%d" % space}))
    found = {}
    for name, text in texts.items():
        writer = await contents.create(Owner(space, name))
        await writer.write(text)
        found[name] = content = await writer.seal()
        await engine.commit(space, name, changing(["note"], lambda *_, number=content.number: {"note": b"%d" % number}))
        contents.keep(content)
    return found


async def make_location(location: Path, texts: dict[str, bytes]) -> dict[str, ContentId]:
    """Make a location with notes; return their contents."""
    engine, contents = RocksEngine.open(store_path(location), system_clock), ContentFiles(content_path(location))
    try:
        return await add_notes(engine, contents, texts)
    finally:
        await engine.close()
        await contents.close()
