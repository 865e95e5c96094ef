"""Directories that outlive a cut of power; the power campaign tries it with real processes."""

import os
from pathlib import Path

import pytest

from lazulite.engine.durable_files import make_private


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    paths: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda file: paths.append(Path(os.readlink(f"/proc/self/fd/{file}"))))
    return paths


def test_the_names_of_those_made_are_synced(tmp_path: Path, synced: list[Path]) -> None:
    make_private(tmp_path / "a" / "b")
    assert {tmp_path, tmp_path / "a"} <= set(synced)


def test_the_name_of_one_that_exists_is_synced(tmp_path: Path, synced: list[Path]) -> None:
    make_private(tmp_path)
    assert synced == [tmp_path.parent]


def test_one_that_exists_may_be_where_nothing_can_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(file: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", reject)
    make_private(tmp_path)
    with pytest.raises(OSError, match="Invalid argument"):
        make_private(tmp_path / "new")
