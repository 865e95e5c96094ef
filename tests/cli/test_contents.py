"""`lazulite check`, `backup` and `restore` of a location whose rows refer to contents."""

import asyncio
from pathlib import Path

import pytest

from lazulite.cli import check, main
from lazulite.engine.content.contract import WINDOW_BYTES, ContentId
from lazulite.settings.config import content_path

from .note_store import REGISTRY, make_location

TEXTS = {"a": b"first", "b": bytes(2 * WINDOW_BYTES + 5), "c": b"third"}


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "SPACES", REGISTRY)


@pytest.fixture(name="location")
def _location(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(name="notes")
def _notes(location: Path) -> dict[str, ContentId]:
    return asyncio.run(make_location(location, TEXTS))


def file_of(location: Path, content: ContentId) -> Path:
    [file] = content_path(location).glob(f"{content.space}/*/{content.number % 4096:03x}")
    return file


@pytest.mark.usefixtures("notes")
def test_check_reads_all_contents(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-l", str(location)]) == 0
    printed = capsys.readouterr().out
    assert "contents   3\n" in printed
    assert "notes      3\n" in printed


def test_check_names_what_is_missing_or_damaged(
    location: Path, notes: dict[str, ContentId], capsys: pytest.CaptureFixture[str]
) -> None:
    file_of(location, notes["a"]).unlink()
    damaged = bytearray(file_of(location, notes["b"]).read_bytes())
    damaged[WINDOW_BYTES] ^= 1
    file_of(location, notes["b"]).write_bytes(damaged)
    assert main(["check", "-l", str(location)]) == 1
    complaint = capsys.readouterr().err
    name = f"lazulite: notebook n{notes['a'].space}"
    assert f"{name}, ('a', 'note'): content {notes['a'].number} of space {notes['a'].space}: it is missing" in complaint
    assert f"{name}, ('b', 'note'): content {notes['b'].number} of space {notes['b'].space}: the bytes" in complaint
    assert "2 problems" in complaint


def test_check_names_exchanged_files(
    location: Path, notes: dict[str, ContentId], capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (file_of(location, notes[name]) for name in "ac")
    mine, yours = one.read_bytes(), other.read_bytes()
    one.write_bytes(yours)
    other.write_bytes(mine)
    assert main(["check", "-l", str(location)]) == 1
    complaint = capsys.readouterr().err
    for name in "ac":
        place = f"content {notes[name].number} of space {notes[name].space}"
        assert f"('{name}', 'note'): {place}: the file is that of another content" in complaint
    assert "2 problems" in complaint


def test_a_backup_has_the_contents_and_is_restored(
    location: Path, tmp_path: Path, notes: dict[str, ContentId], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", str(tmp_path / "backup"), "-l", str(location), "--verify"]) == 0
    assert main(["restore", str(tmp_path / "backup"), "-l", str(tmp_path / "again")]) == 0
    assert capsys.readouterr().out.count("contents   3\n") == 2
    for content in notes.values():
        assert file_of(tmp_path / "again", content).read_bytes() == file_of(location, content).read_bytes()
    file_of(tmp_path / "backup", notes["c"]).unlink()
    assert main(["restore", str(tmp_path / "backup"), "-l", str(tmp_path / "third")]) == 1
    assert "is missing" in capsys.readouterr().err
