"""A key set in a file: read, read again, and kept when the file is spoiled."""

from pathlib import Path

import pytest

from lazulite.auth.accounts.account import LOOK_SECONDS
from lazulite.auth.bearer.jwks import JWKS_BYTES_MAX, JwksError, KeySet, parse_jwks
from lazulite.auth.bearer.jwks_file import FileKeys
from tests.tokens import jwks, signing_key

ONE, TWO = jwks(signing_key("one")), jwks(signing_key("two", "ES256"))


class Fixture:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.now_s = 0.0
        self.reports: list[str] = []
        path.write_bytes(ONE)
        self.source = FileKeys(path, self.reports.append, lambda: self.now_s)

    async def current(self) -> KeySet:
        self.now_s += LOOK_SECONDS
        return await self.source.current()

    def replace(self, content: bytes) -> None:
        other = self.path.with_suffix(".new")
        other.write_bytes(content)
        other.rename(self.path)


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Fixture:
    return Fixture(tmp_path / "keys.json")


async def test_it_is_read_again_when_it_changes(file: Fixture) -> None:
    assert await file.current() == parse_jwks(ONE)
    file.replace(TWO)
    assert await file.current() == parse_jwks(TWO)
    assert file.reports == []


async def test_it_is_not_looked_at_more_often_than_that(file: Fixture) -> None:
    known = await file.current()
    file.replace(TWO)
    assert await file.source.current() is known
    assert await file.source.renewed(known) == parse_jwks(TWO)


async def test_the_same_keys_stay_the_same_object(file: Fixture) -> None:
    known = await file.current()
    file.replace(ONE + b"\n")
    assert await file.current() is known


@pytest.mark.parametrize("content", [b"", b"rubbish", b" " * (JWKS_BYTES_MAX + 1)])
async def test_spoiled_it_leaves_the_keys_as_they_were(file: Fixture, content: bytes) -> None:
    known = await file.current()
    file.replace(content)
    assert await file.current() is await file.current() is known
    assert len(file.reports) == 1
    assert file.reports[0].startswith(str(file.path))
    assert file.reports[0].endswith("; the signing keys stay as they were")
    file.replace(TWO)
    assert await file.current() == parse_jwks(TWO)


async def test_gone_it_leaves_the_keys_as_they_were(file: Fixture) -> None:
    known = await file.current()
    file.path.unlink()
    assert await file.current() is await file.current() is known
    assert file.reports == [f"cannot read {file.path}: No such file or directory; the signing keys stay as they were"]
    file.replace(TWO)
    assert await file.current() == parse_jwks(TWO)


@pytest.mark.parametrize("content", [None, b"", b'{"keys":[]}'])
def test_from_the_start_it_must_be_good(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "keys.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(JwksError, match=r"keys\.json"):
        FileKeys(path, lambda _: None)
