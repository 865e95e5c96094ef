"""Targets: presets, and files that differ from them."""

from pathlib import Path

import pytest

from lazulite.partitions.targets import CURRENT, PRESETS, STUDY_2010, Rate, TargetsError, targets_from


def test_presets_have_the_numbers_of_their_sources() -> None:
    found = {
        name: (each.partition.target, each.partition.cap, each.account.target, each.queue.target, each.server)
        for name, each in PRESETS.items()
    }
    assert found == {
        "study-2010": (500, 2_500, 5_000, 500, 5_000),
        "study-2010-strict": (500, 500, 5_000, 500, 1_000),
        "current": (2_000, 2_000, 20_000, 2_000, 4_000),
    }


def test_a_file_changes_a_preset(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'base = "study-2010"\nserver_cap = 500\nqueue = 100\npartition = {cap = 3000}\nblob = {target = 700}\n'
        "[balancing]\nservers = 2\nmove_seconds = 10.5\n"
    )
    found = targets_from(str(path))
    assert (found.name, found.server, found.queue) == ("mine", 500, Rate(100, 100))
    assert (found.partition, found.blob) == (Rate(500, 3_000), Rate(700, 700))
    assert (found.balancing.servers, found.balancing.move_seconds) == (2, 10.5)
    assert (found.account, found.balancing.round_seconds) == (STUDY_2010.account, 15)


def test_a_file_without_a_base_changes_the_targets_of_today(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("timeout_share = 0\n")
    assert targets_from(str(path)).partition == CURRENT.partition


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('base = "azure"', "base: there are study-2010, study-2010-strict, current"),
        ("base = 1", "base: there are"),
        ("partitions = 1", "partitions: there is no such target"),
        ('name = "x"', "name: there is no such target"),
        ("queue = -1", "queue: expected a number that is not negative"),
        ("queue = true", "queue: expected a number that is not negative"),
        ("queue = inf", "queue: expected a number that is not negative"),
        ("queue = nan", "queue: expected a number that is not negative"),
        ("queue = 0", "queue: expected a target above 0, and a cap that is not below it"),
        ("queue = {target = 2, cap = 1}", "queue: expected a target above 0, and a cap that is not below it"),
        ("queue = {most = 2}", "queue.most: expected target or cap"),
        ("indexes = 1", "indexes: expected true or false"),
        ("server_cap = {target = 2}", "server_cap: expected a number that is not negative"),
        ("burst_seconds = 0", "round_seconds and burst_seconds: expected more than 0"),
        ("timeout_share = 2", "expected merge_share < split_share <= 1, and timeout_share <= 1"),
        ("balancing = 1", "balancing: expected a table"),
        ("[balancing]\nservers = 0", "balancing.servers: expected 1 to 64"),
        ("[balancing]\nservers = 1.5", "balancing.servers: expected a whole number"),
        ("[balancing]\nspeed = 1", "balancing.speed: there is no such setting"),
        ("[balancing]\nmerge_share = 0.5", "expected merge_share < split_share <= 1, and timeout_share <= 1"),
        ("[balancing]\nranges_low = 30", "expected 1 <= ranges_low <= ranges_high <= 100"),
        ("queue = ", "Invalid value"),
        ("queue = '\udcff'", "it is not UTF-8"),
    ],
)
def test_an_invalid_file_is_rejected_with_what_is_wrong(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TargetsError) as error:
        targets_from(str(path))
    assert str(path) in str(error.value)
    assert reason in str(error.value)


def test_a_name_that_is_neither_preset_nor_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TargetsError, match="there are study-2010, study-2010-strict, current, off, and files"):
        targets_from("study")
    with pytest.raises(TargetsError, match="No such file"):
        targets_from(str(tmp_path / "absent.toml"))
