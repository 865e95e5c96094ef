import subprocess
import sys
from pathlib import Path

import pytest

from lazulite.cli import main
from lazulite.settings.config import account_file


def fields(connection_string: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in connection_string.strip().strip(";").split(";"))


@pytest.fixture
def location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "data"


def test_an_added_account_is_there_for_the_next_process(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "add", "orders", "-l", str(location), "--table-port", "7"]) == 0
    printed = fields(capsys.readouterr().out)
    assert (printed["AccountName"], printed["TableEndpoint"]) == ("orders", "http://127.0.0.1:7/orders")
    command = [sys.executable, "-m", "lazulite", "account", "list", "-l", str(location)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert listed.stdout == "orders\n"
    assert printed["AccountKey"] not in listed.stdout + listed.stderr


def test_one_key_is_rotated_and_the_other_stays(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["account", "add", "orders", "-l", str(location)])
    before = account_file(location).load()["orders"].keys
    capsys.readouterr()
    assert main(["account", "rotate-key", "orders", "--key", "2", "-l", str(location)]) == 0
    after = account_file(location).load()["orders"].keys
    assert after[0] == before[0]
    assert after[1] != before[1]
    rotated = fields(capsys.readouterr().out)["AccountKey"]
    main(["connection-string", "--key", "2", "-l", str(location)])
    assert fields(capsys.readouterr().out)["AccountKey"] == rotated


def test_an_empty_list_says_so_beside_the_list(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "list", "-l", str(location)]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert "devstoreaccount1" in output.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["account", "add", "Bad_Name"], "account name 'Bad_Name': use 3 to 24 characters of a-z and 0-9"),
        (["account", "add", "orders"], "account orders exists already"),
        (["account", "rotate-key", "other", "--key", "1"], "there is no account other"),
        (["account", "revoke-delegation-keys", "other"], "there is no account other"),
        (["connection-string", "--account", "other"], "there is no account other; the accounts are: orders"),
    ],
)
def test_rejections(arguments: list[str], reason: str, location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["account", "add", "orders", "-l", str(location)])
    capsys.readouterr()
    assert main([*arguments, "-l", str(location)]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"lazulite: {reason}\n")


def test_a_damaged_file_is_rejected(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    location.mkdir()
    account_file(location).path.write_text("{")
    for command in (["account", "list"], ["account", "add", "orders"], ["connection-string"]):
        assert main([*command, "-l", str(location)]) == 1
        assert capsys.readouterr().err == f"lazulite: {location}/accounts.json is damaged\n"
