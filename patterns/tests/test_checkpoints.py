"""A checkpoint is kept as a whole."""

from pathlib import Path

from lazulite_patterns import FileCheckpoint


def test_a_file_has_the_last_text(tmp_path: Path) -> None:
    checkpoint = FileCheckpoint(tmp_path / "here")
    assert checkpoint.load() is None
    checkpoint.save(None)
    checkpoint.save("one")
    checkpoint.save("two")
    assert FileCheckpoint(tmp_path / "here").load() == "two"
    assert [each.name for each in tmp_path.iterdir()] == ["here"]
    checkpoint.save(None)
    assert checkpoint.load() is None
