"""Accounts from the environment and from the file."""

import base64
import logging
import pickle
from itertools import count
from pathlib import Path
from random import Random
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import (
    DEVELOPMENT_ACCOUNT,
    LAST_REMOVED,
    POLL_SECONDS,
    Account,
    AccountDirectory,
    AccountFile,
    AccountsError,
    parse_accounts,
)
from lazulite.auth.accounts.document import StoredAccount

RANDOM = Random(7).randbytes
K1, K2 = base64.b64encode(b"first-key").decode(), base64.b64encode(b"second-key").decode()


@pytest.fixture
def file(tmp_path: Path) -> AccountFile:
    return AccountFile(tmp_path / "accounts.json")


def keys(directory: AccountDirectory, name: str) -> tuple[bytes, ...]:
    account = directory.get(name)
    assert account is not None
    return account.keys


def test_an_account_signs_the_same_in_the_process_that_unpickles_it() -> None:
    [account] = parse_accounts(f"one:{K1}:{K2}").values()
    unpickled = pickle.loads(pickle.dumps(account))
    assert (unpickled.name, unpickled.keys) == (account.name, account.keys)
    signatures = [[signer.sign(b"message") for signer in each.signers] for each in (account, unpickled)]
    assert signatures[0] == signatures[1]


def test_the_environments_forms() -> None:
    accounts = parse_accounts(f" one:{K1}; two:{K1}:{K2} ;my-odd_Name.1:{K2};;")
    assert {name: account.keys for name, account in accounts.items()} == {
        "one": (b"first-key",),
        "two": (b"first-key", b"second-key"),
        "my-odd_Name.1": (b"second-key",),
    }
    assert all(name == account.name for name, account in accounts.items())
    assert parse_accounts("") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{K1}", "account 1 needs"),
        (f"one:{K1};two", "account 2 needs"),
        (f"one:{K1}:{K1}:{K1}", "account 1 needs"),
        ("one:", "a key of account 1 is not base64"),
        (f"one:{K1}:", "a key of account 1 is not base64"),
        (f"one:{K1}*", "a key of account 1 is not base64"),
        (f"one:{K1}ö", "a key of account 1 is not base64"),
        (f":{K1}", "account 1 has no usable name"),
        (f"a/b:{K1}", "account 1 has no usable name"),
        (f"a b:{K1}", "account 1 has no usable name"),
        (f"one-secondary:{K1}", "account 1 has no usable name"),
        (f"{'x' * 65}:{K1}", "account 1 has no usable name"),
        (f"one:{K1};one:{K2}", "account 2 repeats"),
    ],
)
def test_a_malformed_value_is_rejected_without_showing_it(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        parse_accounts(text)
    assert K1 not in str(caught.value)
    assert caught.value.__cause__ is None


@given(st.text(max_size=60))
def test_any_text_parses_or_is_rejected(text: str) -> None:
    try:
        accounts = parse_accounts(text)
    except ValueError:
        return
    assert all(account.keys and all(account.keys) for account in accounts.values())


def test_no_key_in_a_repr(caplog: pytest.LogCaptureFixture) -> None:
    account = Account("one", (b"first-key",))
    logging.getLogger().warning("%r %s", account, account)
    for text in (repr(account), str(account), repr({"one": account}), caplog.text):
        assert "one" in text
        assert "first-key" not in text


def test_an_account_is_its_identity() -> None:
    one = Account("one", (b"k",))
    assert one == one  # noqa: PLR0124 - the point
    assert one != Account("one", (b"k",))


def test_an_account_is_the_same_object_until_it_changes() -> None:
    accounts = AccountDirectory({})
    accounts.replace({"acct": StoredAccount((b"first", b"second"))})
    account = accounts.get("acct")
    assert account is not None
    accounts.replace({"acct": StoredAccount((b"first", b"second")), "more": StoredAccount((b"a", b"b"))})
    assert accounts.get("acct") is account
    accounts.replace({"acct": StoredAccount((b"third", b"second"))})
    assert accounts.get("acct") is not account


def test_without_accounts_there_is_the_development_account(file: AccountFile) -> None:
    for directory in (AccountDirectory({}), AccountDirectory({}, file, monotonic=count().__next__)):
        assert directory.get("devstoreaccount1") is DEVELOPMENT_ACCOUNT
        assert directory.names() == ["devstoreaccount1"]
        assert directory.development
        assert directory.get("other") is None


def test_any_account_of_ones_own_ends_the_development_account(file: AccountFile) -> None:
    directory = AccountDirectory({}, file, monotonic=count().__next__)
    file.add("orders", RANDOM)
    assert directory.get("devstoreaccount1") is None
    assert not directory.development
    assert AccountDirectory(parse_accounts(f"one:{K1}")).get("devstoreaccount1") is None


def test_the_development_account_does_not_come_back(file: AccountFile) -> None:
    file.add("orders", RANDOM)
    directory = AccountDirectory({}, file, monotonic=count().__next__)
    file.path.write_text('{"version": 1, "accounts": []}')
    assert directory.get("devstoreaccount1") is None
    assert directory.get("orders") is None


def test_the_removal_of_the_last_account_is_reported_once() -> None:
    reported: list[str] = []
    directory = AccountDirectory({}, report=reported.append)
    directory.replace({"orders": StoredAccount((b"first", b"second"))})
    for _ in range(2):
        directory.replace({})
    assert reported == [LAST_REMOVED]
    AccountDirectory({}, report=reported.append).replace({})  # The development account is implied: another report.
    assert reported == [LAST_REMOVED]


def test_the_public_key_is_seen_under_any_name() -> None:
    public = base64.b64encode(DEVELOPMENT_ACCOUNT.keys[0]).decode()
    assert AccountDirectory(parse_accounts(f"prod:{K1}:{public}")).development


def test_the_environment_wins(file: AccountFile) -> None:
    file.add("orders", RANDOM)
    file.add("items", RANDOM)
    directory = AccountDirectory(parse_accounts(f"orders:{K1}"), file, monotonic=count().__next__)
    assert keys(directory, "orders") == (b"first-key",)
    assert keys(directory, "items") == file.load()["items"].keys
    file.rotate("orders", 1, RANDOM)
    assert keys(directory, "orders") == (b"first-key",)


def test_edits_are_seen_without_a_restart(file: AccountFile) -> None:
    directory = AccountDirectory({}, file, monotonic=count().__next__)
    assert directory.get("orders") is None
    first = file.add("orders", RANDOM)
    assert keys(directory, "orders") == first
    second = file.rotate("orders", 2, RANDOM)
    assert keys(directory, "orders") == second
    assert directory.names() == ["orders"]


def test_an_unchanged_account_stays_the_same_object(file: AccountFile) -> None:
    file.add("orders", RANDOM)
    directory = AccountDirectory({}, file, monotonic=count().__next__)
    before = directory.get("orders")
    file.add("items", RANDOM)
    assert directory.get("items") is not None
    assert directory.get("orders") is before
    file.rotate("orders", 1, RANDOM)
    assert directory.get("orders") is not before


def test_the_file_is_read_once_for_each_state(file: AccountFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.add("orders", RANDOM)
    directory = AccountDirectory({}, file, monotonic=count().__next__)
    read = Mock(wraps=file.read)
    monkeypatch.setattr(file, "read", read)
    for _ in range(5):
        directory.get("orders")
    assert read.call_count == 0
    file.add("items", RANDOM)
    read.reset_mock()
    for _ in range(5):
        directory.get("orders")
    assert read.call_count == 1


@pytest.mark.parametrize("harm", ["damage", "remove", "directory"])
def test_a_damaged_file_keeps_the_last_good_state_and_is_reported_once(file: AccountFile, harm: str) -> None:
    good = file.add("orders", RANDOM)
    text = file.path.read_bytes()
    reports: list[str] = []
    directory = AccountDirectory({}, file, reports.append, monotonic=count().__next__)
    if harm == "damage":
        file.path.write_bytes(text[:-20])
    else:
        file.path.unlink()
        if harm == "directory":
            file.path.mkdir()
    for _ in range(3):
        assert keys(directory, "orders") == good
        assert directory.get("devstoreaccount1") is None
    assert len(reports) == 1
    assert "the accounts stay as they were" in reports[0]
    assert base64.b64encode(good[0]).decode() not in reports[0]

    if harm == "directory":
        file.path.rmdir()
    file.path.write_bytes(text)
    added = file.add("items", RANDOM)
    assert keys(directory, "items") == added
    assert len(reports) == 1


def test_a_file_made_readable_again_is_read(file: AccountFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of mode alone is a change of state."""
    good = file.add("orders", RANDOM)
    reports: list[str] = []
    directory = AccountDirectory({}, file, reports.append, monotonic=count().__next__)
    read = Mock(side_effect=AccountsError("cannot read"))
    monkeypatch.setattr(file, "read", read)
    file.path.chmod(0)
    assert keys(directory, "orders") == good
    file.path.chmod(0o600)
    assert keys(directory, "orders") == good
    assert read.call_count == len(reports) == 2


def test_damage_at_the_start_is_an_error(file: AccountFile) -> None:
    file.path.write_text("{")
    with pytest.raises(AccountsError):
        AccountDirectory({}, file, monotonic=count().__next__)


def test_the_file_is_looked_at_no_more_often_than_said(tmp_path: Path) -> None:
    file = AccountFile(tmp_path / "accounts.json")
    now = 0.0
    directory = AccountDirectory({}, file, monotonic=lambda: now)
    assert directory.get("orders") is None
    file.add("orders", RANDOM)
    assert directory.get("orders") is None
    now += POLL_SECONDS
    assert directory.get("orders") is not None


def test_a_process_that_has_changed_the_file_looks_at_it_at_once(file: AccountFile) -> None:
    directory = AccountDirectory({}, file, monotonic=lambda: 1.0)
    assert directory.get("orders") is None
    file.add("orders", RANDOM)
    assert directory.get("orders") is None
    directory.read_if_changed()
    assert directory.get("orders") is not None
