"""What a start says of the clock."""

from pathlib import Path

import pytest

from lazulite.app import clock_checks
from lazulite.app.clock_checks import NAME, check_database_time, check_newest_timestamp, check_since_boot, note_boot
from lazulite.protocol.clock import TICKS_PER_DAY, UNIX_EPOCH_TICKS, unix_seconds
from lazulite.settings.config import ConfigError

DAY = TICKS_PER_DAY
NOW = UNIX_EPOCH_TICKS + 20_000 * DAY
BOOT = NOW - 5 * DAY


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clock_checks, "system_clock", lambda: NOW)
    monkeypatch.setattr(clock_checks, "_BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("one\n")


def test_a_jump_since_the_last_start_is_rejected_while_the_machine_is_the_same_boot(tmp_path: Path) -> None:
    check_since_boot(tmp_path / "missing", BOOT)
    note_boot(tmp_path, BOOT)
    for step in (-1000 * DAY, 0, DAY):
        check_since_boot(tmp_path, BOOT + step)
    with pytest.raises(ConfigError, match=r"jumped 2\.0 days ahead since the last start, to 2024-10-04.*--accept"):
        check_since_boot(tmp_path, BOOT + 2 * DAY)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    # After a boot, years may have gone by.
    (tmp_path / "boot_id").write_text("two\n")
    check_since_boot(tmp_path, BOOT + 3650 * DAY)


@pytest.mark.parametrize("text", ["", "one", "one x", "one 1 2", "\ufeff", "\x00" * 10])
def test_a_damaged_record_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text)
    check_since_boot(tmp_path, BOOT + 3650 * DAY)


def test_where_boots_have_no_id_nothing_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "boot_id").unlink()
    note_boot(tmp_path, BOOT)
    assert not (tmp_path / NAME).exists()


def test_a_disk_that_takes_no_record_keeps_nothing_from_starting(tmp_path: Path) -> None:
    note_boot(tmp_path / "missing", BOOT)


def test_timestamps_may_be_a_day_ahead() -> None:
    for timestamp in (0, NOW, NOW + DAY):
        check_newest_timestamp("here", timestamp)
    with pytest.raises(ConfigError, match=r"Timestamp in here is 2024-10-05T00:00:00Z, 1\.0 days ahead.*--accept"):
        check_newest_timestamp("here", NOW + DAY + 1)


def test_a_clock_may_be_a_day_ahead_of_the_databases() -> None:
    for ahead in (-1000 * DAY, 0, DAY):
        check_database_time("there", unix_seconds(NOW - ahead))
    with pytest.raises(ConfigError, match=r"2\.0 days ahead of the clock of there.*--accept"):
        check_database_time("there", unix_seconds(NOW - 2 * DAY))
