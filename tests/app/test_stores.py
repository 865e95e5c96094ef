"""The stores that a process opens."""

from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from lazulite.app.services import open_services
from lazulite.app.stores import open_store
from lazulite.engine.content.contract import ContentStore, Owner
from lazulite.engine.content.memory import ContentMemory
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.service.definition import ServiceDependencies
from lazulite.settings.addresses import TABLE
from lazulite.table.service import TableService

from .test_services import SETTINGS

OWNER = Owner(1024, "blob")


async def written_and_read(contents: ContentStore | None) -> bytes:
    assert contents is not None
    writer = await contents.create(OWNER)
    await writer.write(b"bytes")
    content = await writer.seal()
    contents.keep(content)
    async with aclosing(contents.read(content, 0, 5)) as pieces:
        return b"".join([piece async for piece in pieces])


async def test_contents_of_a_location_are_files_below_it(tmp_path: Path) -> None:
    async with open_store(replace(SETTINGS, location=tmp_path)) as store:
        assert await written_and_read(store.contents) == b"bytes"
    assert [path.name for path in (tmp_path / "content" / "1024").iterdir()] == ["0"]


async def test_contents_of_a_store_in_memory_are_in_memory() -> None:
    async with open_store(SETTINGS) as store:
        assert isinstance(store.contents, ContentMemory)
        assert await written_and_read(store.contents) == b"bytes"


async def test_a_service_gets_the_contents_of_the_store() -> None:
    given: list[ServiceDependencies] = []

    def make(dependencies: ServiceDependencies) -> TableService:
        given.append(dependencies)
        return TableService(dependencies)

    async with (
        open_store(SETTINGS) as store,
        open_services(replace(SETTINGS, services=(TABLE,)), store, FairScheduler(), makes={TABLE: make}),
    ):
        assert given[0].contents is store.contents is not None
