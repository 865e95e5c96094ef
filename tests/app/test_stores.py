"""The stores that a process opens."""

from contextlib import aclosing
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

from lazulite.app.services import open_services
from lazulite.app.stores import development_off, open_store
from lazulite.auth.accounts.account import AccountDirectory, AccountFile
from lazulite.engine.content.contract import ContentStore, Owner
from lazulite.engine.content.memory import ContentMemory
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.service.definition import ServiceDependencies
from lazulite.settings.addresses import TABLE
from lazulite.settings.config import DEVELOPMENT_OFF
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


async def test_the_log_says_once_that_the_first_account_switches_the_development_account_off(tmp_path: Path) -> None:
    file, reports, sleeps = AccountFile(tmp_path / "accounts.json"), list[str](), list[float]()
    directory = AccountDirectory({}, file, monotonic=count().__next__)

    async def sleep(seconds: float) -> None:
        assert reports == []
        sleeps.append(seconds)
        if len(sleeps) == 3:
            file.add("orders", Random(7).randbytes)

    await development_off(directory, reports.append, sleep)
    assert len(sleeps) == 3
    assert reports == [DEVELOPMENT_OFF]
    await development_off(directory, reports.append, sleep)
    assert len(reports) == 1, "it was off from the start"


async def test_switches_of_the_development_account_do_not_switch_it_off(tmp_path: Path) -> None:
    file, reports = AccountFile(tmp_path / "accounts.json"), list[str]()
    directory = AccountDirectory({}, file, monotonic=count().__next__)

    async def sleep(_: float) -> None:
        file.switch("devstoreaccount1", lambda switches: switches._replace(versioning=True))

    await development_off(directory, reports.append, sleep)
    assert reports == []
