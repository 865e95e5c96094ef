"""`lazulite stress` against the emulator Azurite, which is another endpoint that people have."""

import json
from pathlib import Path

import pytest

from lazulite.cli import main
from lazulite.stress.verdict import Outcome

from .test_patterns_pages import connection_string

__all__ = ["connection_string"]
QUICK = ("--seconds", "0.5", "--warm-seconds", "0.5", "--silent")


@pytest.mark.parametrize("workload", ["batch", "queue", "blob"])
def test_azurite_is_put_under_load(
    connection_string: str,
    workload: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAZULITE_CONNECTION_STRING", connection_string)
    results = tmp_path / "results.json"
    flags = ("--workload", workload, "--batch", "10", "--entities", "20", "--rate", "20", "--json", str(results))
    code = main(["stress", *flags, *QUICK])
    assert capsys.readouterr().err == ""
    found = json.loads(results.read_text(encoding="utf-8"))
    (step,) = found["steps"]
    assert step["requests"] > 0
    assert (step["failed"], step["refused"]) == (0, 0)
    # Which verdict it is depends on the speed of the machine: it may not be steady, or not reach the rate.
    assert code == Outcome[found["verdict"]["outcome"].upper()].value
    assert main(["stress", "--clean", "--workload", workload]) == 0
    assert "0 left over" in capsys.readouterr().err
