"""The account file: whole or not at all, no lost edit, owner only, no key in any text."""

import base64
import errno
import fcntl
import hashlib
import json
import os
import random
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from lazulite.auth.accounts import file_store
from lazulite.auth.accounts.document import KEY_BYTES, AccountsError, StoredAccount
from lazulite.auth.accounts.file_store import AccountFile

RANDOM = Random(7).randbytes


@pytest.fixture
def file(tmp_path: Path) -> AccountFile:
    return AccountFile(tmp_path / "location" / "accounts.json")


def test_no_file_is_no_accounts(file: AccountFile) -> None:
    assert file.load() == {}


def test_add_makes_two_different_keys_and_keeps_them(file: AccountFile) -> None:
    keys = file.add("orders", RANDOM)
    assert [len(key) for key in keys] == [KEY_BYTES, KEY_BYTES]
    assert keys[0] != keys[1]
    assert AccountFile(file.path).load() == {"orders": StoredAccount(keys)}


def test_the_format_is_the_documented_one(file: AccountFile) -> None:
    keys = file.add("orders", RANDOM)
    accounts = [{"name": "orders", "keys": [base64.b64encode(key).decode() for key in keys]}]
    sha256 = hashlib.sha256(json.dumps(accounts, sort_keys=True).encode()).hexdigest()
    assert json.loads(file.path.read_bytes()) == {"version": 1, "accounts": accounts, "sha256": sha256}


def test_a_file_written_by_hand_needs_no_checksum(file: AccountFile) -> None:
    keys = file.add("orders", RANDOM)
    document = json.loads(file.path.read_bytes())
    del document["sha256"]
    file.path.write_text(json.dumps(document))
    assert file.load() == {"orders": StoredAccount(keys)}


def test_no_bit_of_the_file_flips_unseen(file: AccountFile) -> None:
    file.add("orders", RANDOM)
    known, content = file.load(), file.path.read_bytes()
    for bit in random.Random(5).sample(range(len(content) * 8), 400):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        file.path.write_bytes(damaged)
        try:
            assert file.load() == known  # A flip between two kinds of white space says nothing else.
        except AccountsError:
            continue


@pytest.mark.parametrize("which", [1, 2])
def test_rotate_replaces_one_key_and_leaves_the_other(file: AccountFile, which: int) -> None:
    before = file.add("orders", RANDOM)
    file.add("other", RANDOM)
    other = file.load()["other"]
    after = file.rotate("orders", which, RANDOM)
    assert after[which - 1] != before[which - 1]
    assert after[2 - which] == before[2 - which]
    assert file.load() == {"orders": StoredAccount(after), "other": other}


def test_a_revocation_of_delegation_keys_stays_with_its_account(file: AccountFile) -> None:
    keys = file.add("orders", RANDOM)
    other = file.add("other", RANDOM)
    file.revoke_delegation_keys("orders", 1_900_000_000)
    assert file.load() == {"orders": StoredAccount(keys, 1_900_000_000), "other": StoredAccount(other)}
    file.revoke_delegation_keys("orders", 1_800_000_000)
    rotated = file.rotate("orders", 1, RANDOM)
    assert AccountFile(file.path).load()["orders"] == StoredAccount(rotated, 1_900_000_001), "it never moves back"
    with pytest.raises(AccountsError, match="there is no account missing"):
        file.revoke_delegation_keys("missing", 1)


@pytest.mark.parametrize("name", ["", "ab", "a" * 25, "Orders", "my-account", "ördersx", "a/b", "abc\n"])
def test_a_new_name_follows_the_services_rule(file: AccountFile, name: str) -> None:
    with pytest.raises(AccountsError, match="3 to 24 characters"):
        file.add(name, RANDOM)
    assert not file.path.exists()


def test_a_rejected_edit_changes_nothing(file: AccountFile) -> None:
    file.add("orders", RANDOM)
    before = file.path.read_bytes()
    with pytest.raises(AccountsError, match="exists already"):
        file.add("orders", RANDOM)
    with pytest.raises(AccountsError, match="there is no account"):
        file.rotate("nobody", 1, RANDOM)
    with pytest.raises(AccountsError, match="key 1 and key 2"):
        file.rotate("orders", 3, RANDOM)
    assert file.path.read_bytes() == before


def test_only_the_owner_may_read_whatever_the_umask_or_a_stale_temporary(file: AccountFile) -> None:
    file.path.parent.mkdir()
    Path(f"{file.path}.new").write_bytes(b"left by a crash")
    Path(f"{file.path}.new").chmod(0o666)
    old = os.umask(0)
    try:
        file.add("orders", RANDOM)
    finally:
        os.umask(old)
    for path in (file.path, Path(f"{file.path}.lock")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_editors_exclude_each_other(file: AccountFile) -> None:
    """Many editors at once, each reading the others' work: none is lost."""
    names = [f"account{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: AccountFile(file.path).add(name, os.urandom), names))
    assert sorted(file.load()) == sorted(names)


def test_the_lock_is_held_while_an_edit_lasts(file: AccountFile) -> None:
    held: list[int | None] = []

    def probe(count: int) -> bytes:
        descriptor = os.open(f"{file.path}.lock", os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            held.append(error.errno)
        finally:
            os.close(descriptor)
        return RANDOM(count)

    file.add("orders", probe)
    assert held == [errno.EWOULDBLOCK] * 2


def test_a_state_is_synced_before_it_takes_the_name_and_the_name_after(
    file: AccountFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.replace

    def seen_fsync(descriptor: int) -> None:
        steps.append("sync directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        fsync(descriptor)

    def seen_rename(source: Path, target: Path) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_rename)
    file.add("orders", RANDOM)
    assert steps[-3:] == ["sync file", "rename", "sync directory"]


def test_a_full_disk_leaves_the_old_state(file: AccountFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.add("orders", RANDOM)
    before = file.load()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AccountsError, match="No space left on device"):
        file.rotate("orders", 1, RANDOM)
    assert file.load() == before


def entry(*keys: object, name: object = "a") -> dict[str, object]:
    return {"name": name, "keys": list(keys)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"version": 1}',
        json.dumps({"version": 1, "accounts": [entry("c2VjcmV0")]}),
        json.dumps({"version": 1, "accounts": [entry("c2VjcmV0", "")]}),
        json.dumps({"version": 1, "accounts": [entry("c2VjcmV0", "c2VjcmV0!")]}),
        json.dumps({"version": 1, "accounts": [entry("c2VjcmV0", 7)]}),
        json.dumps({"version": 1, "accounts": [entry("c2VjcmV0", "c2VjcmV0", name=["c2VjcmV0"])]}),
        json.dumps({"version": 1, "accounts": [entry("c2VjcmV0", "c2VjcmV0")] * 2}),
        b"\xff\xfe",
    ],
)
def test_damage_is_reported_without_a_key(file: AccountFile, text: str | bytes) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(AccountsError, match="damaged") as caught:
        file.load()
    assert "c2VjcmV0" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_newer_version_is_rejected(file: AccountFile) -> None:
    file.path.parent.mkdir()
    file.path.write_text('{"version": 2}')
    with pytest.raises(AccountsError, match="newer Lazulite"):
        file.load()


@pytest.mark.parametrize("edit", [lambda file: file.load(), lambda file: file.add("orders", RANDOM)])
def test_an_unusable_path_is_one_clear_error(tmp_path: Path, edit: Callable[[AccountFile], object]) -> None:
    (tmp_path / "accounts.json").mkdir()
    with pytest.raises(AccountsError, match="Is a directory"):
        edit(AccountFile(tmp_path / "accounts.json"))


def test_a_location_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AccountsError, match="cannot write"):
        AccountFile(tmp_path / "file" / "accounts.json").add("orders", RANDOM)


def test_the_size_read_is_bounded(file: AccountFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.add("orders", RANDOM)
    monkeypatch.setattr(file_store, "MAX_FILE_BYTES", 100)
    with pytest.raises(AccountsError, match="damaged"):
        file.load()
