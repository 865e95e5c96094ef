import base64
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.accounts.switches import Switches
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


OFF = (
    "lazulite: devstoreaccount1 with its public key is off, as there is another account now; "
    "to have both: lazulite account add devstoreaccount1\n"
)


def test_the_first_account_switches_the_development_account_off_and_says_so(
    location: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["account", "add", "orders", "-l", str(location)]) == 0
    assert capsys.readouterr().err == OFF
    assert main(["account", "add", "items", "-l", str(location)]) == 0
    assert capsys.readouterr().err == ""


def test_the_development_account_is_added_with_its_public_key(
    location: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = base64.b64encode(DEVELOPMENT_ACCOUNT.keys[0]).decode()
    assert main(["account", "add", "devstoreaccount1", "-l", str(location)]) == 0
    output = capsys.readouterr()
    assert (fields(output.out)["AccountKey"], output.err) == (public, "")
    main(["account", "add", "orders", "-l", str(location)])
    output = capsys.readouterr()
    assert fields(output.out)["AccountKey"] != public
    assert output.err == ""
    directory = AccountDirectory({}, account_file(location))
    assert directory.names() == ["devstoreaccount1", "orders"]
    assert directory.development
    kept = directory.get("devstoreaccount1")
    assert kept is not None
    assert kept.switches == DEVELOPMENT_ACCOUNT.switches


def test_the_development_account_gets_switches_and_keeps_its_key(
    location: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = AccountDirectory({}, account_file(location), monotonic=count().__next__)
    assert main(["account", "show", "devstoreaccount1", "-l", str(location)]) == 0
    assert "--versioning off" in capsys.readouterr().out
    assert main(["account", "set", "devstoreaccount1", "--versioning", "on", "-l", str(location)]) == 0
    assert capsys.readouterr() == ("", "")
    changed = directory.get("devstoreaccount1")
    assert changed is not None
    assert set(changed.keys) == set(DEVELOPMENT_ACCOUNT.keys)
    assert changed.switches == DEVELOPMENT_ACCOUNT.switches._replace(versioning=True)
    assert not directory.implied


def test_the_development_account_that_is_off_gets_no_switches(
    location: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["account", "add", "orders", "-l", str(location)])
    capsys.readouterr()
    assert main(["account", "set", "devstoreaccount1", "--versioning", "on", "-l", str(location)]) == 1
    assert capsys.readouterr().err == "lazulite: there is no account devstoreaccount1\n"


LEFT = "lazulite: no account is left, not even devstoreaccount1; create one: lazulite account add NAME\n"


@pytest.mark.parametrize("name", ["orders", "devstoreaccount1"])
def test_the_last_account_is_removed_and_the_development_account_does_not_come_back(
    name: str, location: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "orders":
        main(["account", "add", name, "-l", str(location)])
    capsys.readouterr()
    assert main(["account", "remove", name, "-l", str(location)]) == 0
    assert capsys.readouterr() == ("", LEFT)
    assert AccountDirectory({}, account_file(location)).names() == []
    assert main(["account", "list", "-l", str(location)]) == 0
    assert capsys.readouterr().err.endswith("the service has no account\n")
    assert main(["connection-string", "-l", str(location)]) == 1
    assert capsys.readouterr().err == "lazulite: there is no account; create one: lazulite account add NAME\n"
    assert main(["account", "set", "devstoreaccount1", "--versioning", "on", "-l", str(location)]) == 1
    assert main(["account", "add", "devstoreaccount1", "-l", str(location)]) == 0


def test_switches_are_set_and_shown(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["account", "add", "orders", "-l", str(location)])
    capsys.readouterr()

    def run(*arguments: str) -> str:
        assert main(["account", *arguments, "-l", str(location)]) == 0
        return capsys.readouterr().out

    defaults = "--versioning off\n--container-retention-days 0\n--public-access off\n--rehydrate-after 0\n"
    assert run("show", "orders") == defaults
    assert run("set", "orders", "--versioning", "on", "--container-retention-days", "365") == ""
    assert run("set", "orders", "--rehydrate-after", "3600") == ""
    assert run("set", "orders", "--public-access", "on") == ""
    shown = run("show", "orders")
    assert shown == "--versioning on\n--container-retention-days 365\n--public-access on\n--rehydrate-after 3600\n"
    assert run("set", "orders", "--versioning", "off", "--container-retention-days", "0") == ""
    assert run("set", "orders", "--rehydrate-after", "0") == ""
    assert account_file(location).load()["orders"].switches == Switches(public_access=True)
    assert run("set", "orders", *shown.split()) == "", "what is shown can be set"


def test_an_account_is_named_by_an_argument_or_by_the_flag(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "add", "--account", "orders", "-l", str(location)]) == 0
    added = capsys.readouterr().out
    for words in (["orders"], ["--account", "orders"], ["orders", "--account", "orders"]):
        assert main(["connection-string", *words, "-l", str(location)]) == 0
        assert capsys.readouterr().out == added
        assert main(["account", "show", *words, "-l", str(location)]) == 0
        assert "--versioning off" in capsys.readouterr().out
    assert main(["account", "show", "orders", "--account", "others", "-l", str(location)]) == 2
    assert capsys.readouterr().err == "lazulite: NAME and --account are different accounts\n"
    assert main(["account", "show", "-l", str(location)]) == 2
    assert capsys.readouterr().err == 'lazulite: name the account (see "lazulite account show --help")\n'


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--versioning", "yes"], "'yes' is neither on nor off"),
        (["--container-retention-days", "366"], "'366' is not a number of days (0 to 365)"),
        (["--rehydrate-after", "2592001"], "'2592001' is not a number of seconds (0 to 2592000)"),
        (["--container-retention-days", "-1"], "'-1' is not a number of days"),
    ],
)
def test_values_that_no_switch_has(flags: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["account", "set", "orders", *flags])
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err


def test_a_change_of_no_switch_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "set", "orders"]) == 2
    flags = "--versioning, --container-retention-days, --public-access, --rehydrate-after"
    assert f"at least one of {flags}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["account", "add", "Bad_Name"], "account name 'Bad_Name': use 3 to 24 characters of a-z and 0-9"),
        (["account", "add", "orders"], "account orders exists already"),
        (["account", "rotate-key", "other", "--key", "1"], "there is no account other"),
        (["account", "revoke-delegation-keys", "other"], "there is no account other"),
        (["account", "set", "other", "--versioning", "on"], "there is no account other"),
        (["account", "show", "other"], "there is no account other"),
        (["account", "remove", "other"], "there is no account other"),
        (["account", "remove", "devstoreaccount1"], "there is no account devstoreaccount1"),
        (["connection-string", "--account", "other"], "there is no account other; the accounts are: orders"),
    ],
)
def test_rejections(arguments: list[str], reason: str, location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["account", "add", "orders", "-l", str(location)])
    capsys.readouterr()
    assert main([*arguments, "-l", str(location)]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"lazulite: {reason}\n")


def test_an_account_of_the_environment_is_changed_there(
    location: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAZULITE_ACCOUNTS", "given:" + base64.b64encode(bytes(64)).decode())
    main(["account", "add", "stored", "-l", str(location)])
    capsys.readouterr()
    for action in (["show"], ["set", "--versioning", "on"], ["remove"], ["rotate-key", "--key", "1"]):
        assert main(["account", action[0], "given", *action[1:], "-l", str(location)]) == 1
        assert "account given comes from the environment, not from " in capsys.readouterr().err
    assert main(["account", "show", "stored", "-l", str(location)]) == 0


def test_a_damaged_file_is_rejected(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    location.mkdir()
    account_file(location).path.write_text("{")
    for command in (["account", "list"], ["account", "add", "orders"], ["connection-string"]):
        assert main([*command, "-l", str(location)]) == 1
        assert capsys.readouterr().err == f"lazulite: {location}/accounts.json is damaged\n"


def test_a_reader_that_has_read_enough_is_no_error(location: Path) -> None:
    file = account_file(location)
    file.edit(lambda _: {f"account{number}": StoredAccount((b"1", b"2")) for number in range(20_000)})
    command = [sys.executable, "-m", "lazulite", "account", "list", "-l", str(location)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "account0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 141
