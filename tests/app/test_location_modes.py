"""What others on the machine may do with a location, and that what is made there is its owner's only."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lazulite.app.location_modes import reject_writable, report_readable
from lazulite.settings.config import ConfigError
from tests.cli.test_serve import lazulite, rejected, serving


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
