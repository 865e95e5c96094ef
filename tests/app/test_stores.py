"""The stores that a process opens, and what others on the machine may do with a location."""

import os
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import pytest

from lazulite.app.services import open_services
from lazulite.app.stores import development_off, open_store, reject_writable, report_readable
from lazulite.auth.accounts.account import AccountDirectory, AccountFile
from lazulite.engine.content.contract import ContentStore, Owner
from lazulite.engine.content.memory import ContentMemory
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.service.definition import ServiceDependencies
from lazulite.settings.addresses import TABLE
from lazulite.settings.config import DEVELOPMENT_OFF, ConfigError
from lazulite.table.service import TableService
from tests.cli.test_serve import lazulite, rejected, serving

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


@pytest.fixture
def location(tmp_path: Path) -> Path:
    location = tmp_path / "data"
    (location / "store").mkdir(parents=True)
    location.chmod(0o755)
    (location / "store").chmod(0o700)
    (location / "content").mkdir(mode=0o700)
    (location / "accounts.json").write_text("{}")
    (location / "accounts.json").chmod(0o600)
    return location


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def reported(location: Path) -> list[str]:
    reports: list[str] = []
    report_readable(location, reports.append)
    return reports


@pytest.mark.parametrize("name", [".", "store", "content", "accounts.json"])
@pytest.mark.parametrize("mode", [0o702, 0o777, 0o1777])
def test_what_every_user_may_write_is_rejected(location: Path, name: str, mode: int) -> None:
    (location / name).chmod(mode)
    with pytest.raises(ConfigError, match=rf"{location / name} \(mode {mode:04o}\): run chmod go-w "):
        reject_writable(location)


def test_a_location_that_its_group_may_write_is_reported(location: Path) -> None:
    """As a volume of Kubernetes is, and what `mkdir` makes where a user has a group of its own."""
    location.chmod(0o2775)
    reject_writable(location)
    assert reported(location) == [
        f"users other than the owner may write to {location} (mode 2775): run chmod go-w {location}"
    ]


@pytest.mark.parametrize("name", ["store", "content", "accounts.json"])
@pytest.mark.parametrize("mode", [0o720, 0o740, 0o704, 0o755, 0o644])
def test_what_others_may_read_is_reported(location: Path, name: str, mode: int) -> None:
    (location / name).chmod(mode)
    path = location / name
    assert reported(location) == [f"users other than the owner may read {path} (mode {mode:04o}): run chmod go= {path}"]


def test_nothing_is_said_of_what_is_the_owners_or_missing(location: Path) -> None:
    for place in (location, location / "missing", location / "accounts.json" / "below"):
        reject_writable(place)
        assert reported(place) == []


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_serving_rejects_a_writable_location_and_tells_of_readable_accounts(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    location = tmp_path / "data"
    lazulite("account", "add", "orders", "-l", str(location))
    (location / "accounts.json").chmod(0o644)
    with serving(location, "-s", *workers) as server:
        code, said = server.stop()
        assert code == 0
        assert said == f"lazulite: {reported(location)[0]}\n"
    location.chmod(0o777)
    assert "mode 0777" in rejected(1, "serve", "-s", *workers, "-l", str(location), "--table-port", "0")


@pytest.mark.usefixtures("no_umask")
def test_all_that_is_made_is_its_owners_only(tmp_path: Path) -> None:
    location = tmp_path / "deep" / "data"
    lazulite("account", "add", "orders", "-l", str(location))
    with serving(location, "-s", "--debug", str(tmp_path / "debug.log"), "--workers", "2") as server:
        assert lazulite("backup", str(tmp_path / "backups" / "copy"), "-l", str(location)).returncode == 0
        assert (location / "lazulite.sock").stat().st_mode & 0o777 == 0o600
        assert server.stop() == (0, "")
    assert lazulite("restore", str(tmp_path / "backups" / "copy"), "-l", str(tmp_path / "restored")).returncode == 0
    assert lazulite("copy", "--from", str(location), "--to", str(tmp_path / "copied")).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"backups", "copied", "debug.log", "deep", "restored"}
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
    for place in (location, tmp_path / "backups" / "copy", tmp_path / "restored", tmp_path / "copied"):
        for path in (place, place / "store", place / "accounts.json"):
            assert path.stat().st_mode & 0o077 == 0, path
