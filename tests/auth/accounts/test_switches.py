"""The switches of an account: as they are stored, and in a directory."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account, AccountDirectory, AccountFile, parse_accounts
from lazulite.auth.accounts.document import AccountsError, StoredAccount, read_accounts, write_accounts
from lazulite.auth.accounts.switches import DEFAULTS, EMULATORS, Switches

RANDOM = Random(7).randbytes
PUBLIC = "devstoreaccount1:Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture
def file(tmp_path: Path) -> AccountFile:
    found = AccountFile(tmp_path / "accounts.json")
    found.add("orders", RANDOM)
    return found


def switches(directory: AccountDirectory, name: str) -> Switches:
    account = directory.get(name)
    assert account is not None
    return account.switches


def test_the_defaults_are_azures() -> None:
    assert DEFAULTS == (False, 0, False, 0)


@given(st.builds(Switches, st.booleans(), st.integers(0, 365), st.booleans(), st.integers(0, 2_592_000)))
def test_switches_are_read_as_they_were_written(given: Switches) -> None:
    assert Switches.read(given.write()) == given
    accounts = {"one": StoredAccount((b"1", b"2"), 5, given), "two": StoredAccount((b"3", b"4"))}
    text = write_accounts(accounts)
    assert read_accounts(text, "x") == accounts
    assert text.count(b"switches") == (given != DEFAULTS)


def test_a_switch_of_a_newer_lazulite_is_ignored() -> None:
    assert Switches.read({"versioning": True, "cold": 5}) == Switches(versioning=True)


@pytest.mark.parametrize(
    "stored",
    [
        {"versioning": 1},
        {"public_access": "on"},
        {"container_retention_days": True},
        {"container_retention_days": "1"},
        {"container_retention_days": 366},
        {"container_retention_days": -1},
        {"rehydrate_after": 2_592_001},
        {"rehydrate_after": 1.5},
        ["versioning"],
    ],
)
def test_other_values_are_damage(stored: object) -> None:
    text = '{"version": 1, "accounts": [{"name": "a", "keys": ["MQ==", "Mg=="], "switches": %s}]}'
    with pytest.raises(AccountsError, match="x is damaged"):
        read_accounts((text % str(stored).replace("'", '"').replace("True", "true")).encode(), "x")


def test_a_running_server_notices_a_change(file: AccountFile) -> None:
    clock = [0.0]
    directory = AccountDirectory({}, file, monotonic=lambda: clock[0])
    before = directory.get("orders")
    assert switches(directory, "orders") == DEFAULTS
    file.switch("orders", lambda each: each._replace(versioning=True))
    file.switch("orders", lambda each: each._replace(container_retention_days=7))
    clock[0] = 1.0
    assert switches(directory, "orders") == Switches(True, 7)
    after = directory.get("orders")
    assert after is not before
    file.add("other", RANDOM)
    clock[0] = 2.0
    assert directory.get("orders") is after, "caches hang on the object of an account that did not change"


def test_switches_stay_with_rotated_and_revoked_keys(file: AccountFile) -> None:
    file.switch("orders", lambda each: each._replace(public_access=True))
    file.rotate("orders", 1, RANDOM)
    file.revoke_delegation_keys("orders", 1_900_000_000)
    assert file.switches_of("orders") == Switches(public_access=True)
    with pytest.raises(AccountsError, match="there is no account missing"):
        file.switch("missing", lambda each: each)
    with pytest.raises(AccountsError, match="there is no account missing"):
        file.switches_of("missing")


def test_an_account_of_the_environment_has_the_switches_of_the_stored_one(file: AccountFile) -> None:
    file.switch("orders", lambda each: each._replace(versioning=True))
    directory = AccountDirectory(parse_accounts("orders:MQ==;other:MQ=="), file)
    account = directory.get("orders")
    assert account is not None
    assert (account.keys, account.switches) == ((b"1",), Switches(versioning=True))
    assert switches(directory, "other") == DEFAULTS


def test_an_account_with_the_public_key_has_those_of_the_emulator() -> None:
    assert parse_accounts(PUBLIC)[DEVELOPMENT_ACCOUNT.name].switches == DEVELOPMENT_ACCOUNT.switches == EMULATORS
    assert Switches(public_access=True) == EMULATORS


def test_a_worker_has_the_switches() -> None:
    make, given = Account("a", (b"k",), 3, EMULATORS).__reduce__()
    assert make(*given).switches == EMULATORS
