"""The values of a summary stand below each other."""

import io
import json
from contextlib import suppress
from pathlib import Path

import pytest

from lazulite.app.registry import SPACES
from lazulite.cli import main
from lazulite.cli.errors import CommandError
from lazulite.cli.progress_line import ProgressLine
from lazulite.cli.summary import CommandOutput, labelled


def test_numbers_have_separators() -> None:
    assert labelled("bytes", 1234567) == "bytes      1,234,567"


def test_no_noun_of_a_service_moves_its_value() -> None:
    labels = [label for nouns in SPACES.nouns for label in (nouns.space, nouns.spaces, nouns.rows)]
    assert {labelled(label, "x").index("x", len(label)) for label in labels} == {len("containers ")}


def told(*, json: bool, error: Exception | None = None) -> str:
    """Return what a command prints that tells one of each, and then fails if there is an error."""
    output = io.StringIO()
    with suppress(CommandError), CommandOutput(ProgressLine(io.StringIO(), json=json), output) as command:
        command.tell_line("tables", 1200)
        command.tell_line("location", Path("data"))
        command.tell_item("parts", "table a", {"name": "a"})
        command.tell_item("parts", "table b", {"name": "b"})
        command.tell("all is well")
        if error is not None:
            raise error
    return output.getvalue()


def test_people_read_lines_and_machines_one_object() -> None:
    values = {"tables": 1200, "location": "data", "parts": [{"name": "a"}, {"name": "b"}]}
    assert told(json=False) == "tables     1,200\nlocation   data\ntable a\ntable b\nall is well\n"
    assert json.loads(told(json=True)) == {**values, "ok": True}
    assert json.loads(told(json=True, error=CommandError("no"))) == {**values, "ok": False}


def test_an_error_is_an_object_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["check"], ["backup", str(tmp_path / "backup")], ["restore", str(tmp_path / "missing")]):
        assert main([*command, "--location", str(tmp_path / "none"), "--json"]) == 1
        printed = capsys.readouterr()
        (line,) = printed.err.splitlines()
        assert json.loads(line)["event"] == "error"
        assert printed.out == ""
