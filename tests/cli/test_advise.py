"""`lazulite advise`: what it prints and writes."""

import json
import os
import stat
from pathlib import Path

import pytest

from lazulite.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "advise"


def test_an_answer_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", str(EXAMPLES / "movies.toml")]) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "Keys for movies, 100,000 rows, targets current\n\nPartitionKey = Category, RowKey = Title.\n"
    )


def test_without_an_answer_the_exit_code_is_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", str(EXAMPLES / "no_answer.toml"), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["has_answer"] is False


def test_targets_decide(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", str(EXAMPLES / "recent_first.toml"), "--targets", "study-2010", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"] == {"name": "study-2010", "partition": 500}
    assert main(["advise", str(EXAMPLES / "movies.toml"), "--targets", "none"]) == 1
    assert "no targets 'none'" in capsys.readouterr().err


def test_files_are_written_for_their_owner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, program = tmp_path / "advice.html", tmp_path / "rekey.py"
    assert main(["advise", str(EXAMPLES / "movies.toml"), "-o", str(page), "--program", str(program)]) == 0
    assert capsys.readouterr().out == ""
    assert "<h1>Keys for movies</h1>" in page.read_text()
    assert "class NewPartition(Key):" in program.read_text()
    assert stat.S_IMODE(os.stat(page).st_mode) == 0o600
    assert main(["advise", str(EXAMPLES / "movies.toml"), "-o", str(tmp_path / "advice.json")]) == 0
    assert json.loads((tmp_path / "advice.json").read_text())["table"] == "movies"
    assert main(["advise", str(EXAMPLES / "movies.toml"), "-o", str(tmp_path / "absent" / "a.html")]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "absent.toml"]) == 1
    assert "cannot read absent.toml" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["advise", "a.toml", "-o", "a.txt"])
    assert "ends in neither .html nor .json" in capsys.readouterr().err
