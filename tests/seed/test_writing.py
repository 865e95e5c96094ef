"""States as they are written: read again, they are the same."""

import base64
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient
from hypothesis import given, settings
from hypothesis import strategies as st

import lazulite.testing
from lazulite.cli.http_sender import HttpSender
from lazulite.resources.sender import Reply
from lazulite.resources.tables import Entity, Literal
from lazulite.seed.apply import Application, Changes
from lazulite.seed.document import Seed, read_seed
from lazulite.seed.writing import FILE, entity_text, write_state
from lazulite.table.model.edm import (
    BINARY,
    BOOLEAN,
    DATETIME,
    DATETIME_MAX,
    DOUBLE,
    GUID,
    INT32,
    INT64,
    STRING,
    format_datetime,
    format_double,
)

from .test_apply import SEED

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.one_of(
    TEXTS.map(lambda text: Literal(STRING, STRING.literal(text))),
    st.booleans().map(lambda value: Literal(BOOLEAN, BOOLEAN.literal(value))),
    st.integers(-(2**31), 2**31 - 1).map(lambda value: Literal(INT32, INT32.literal(value))),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: Literal(INT64, INT64.literal(value))),
    st.floats().map(lambda value: Literal(DOUBLE, format_double(value))),
    st.integers(0, DATETIME_MAX).map(lambda ticks: Literal(DATETIME, DATETIME.literal(format_datetime(ticks)))),
    st.uuids().map(lambda value: Literal(GUID, GUID.literal(str(value)))),
    st.binary(max_size=20).map(lambda value: Literal(BINARY, BINARY.literal(base64.b64encode(value).decode()))),
)
NAMES = st.one_of(st.from_regex(r"[A-Za-z_]\w{0,8}", fullmatch=True), TEXTS.filter(bool)).filter(
    lambda name: name not in ("PartitionKey", "RowKey", "Timestamp")
)


@given(TEXTS, TEXTS, st.dictionaries(NAMES, VALUES, max_size=6))
@settings(max_examples=60)
def test_an_entity_that_is_written_is_read_with_the_same_types_and_values(
    partition: str, row: str, properties: dict[str, Literal]
) -> None:
    entity = Entity(partition, row, properties)
    document = tomllib.loads(f"tables.T.rows = [{entity_text(entity)}]")
    assert read_seed(document).own.tables[0].rows[0][1] == entity


@pytest.fixture(scope="module")
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as running:
        yield running


def apply(account: lazulite.testing.Account, seed: Seed) -> Changes:
    changes = Changes()
    with HttpSender(account.connection_string) as sender:
        Application(sender, changes).run(seed.own)
    return changes


def test_a_state_that_is_written_makes_the_same_account(storage: lazulite.testing.Storage, tmp_path: Path) -> None:
    first, second = (storage.account(public_access=True) for _ in range(2))
    apply(first, read_seed(SEED))
    with BlobServiceClient.from_connection_string(first.connection_string) as service:
        service.get_blob_client("files", "a/..%2f..%2fescape.txt").upload_blob(b"inside")
    with HttpSender(first.connection_string) as sender:
        assert write_state(sender, tmp_path / "state", None, lambda _: None) == []
    seed = read_seed(tmp_path / "state" / FILE)
    assert not apply(first, seed).any
    made = apply(second, seed)
    assert made.created == {"tables": 1, "rows": 3, "queues": 1, "messages": 2, "containers": 1, "blobs": 4}
    assert not apply(second, read_seed(SEED)).replaced
    assert {path.parent.name for path in (tmp_path / "state").rglob("*") if path.is_file()} == {"state", "files"}
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "state").rglob("*") if path.is_file()}
    assert modes == {0o600}


class HostileSender(HttpSender):
    """A server that lists a container by a name which leads out of a folder."""

    NAME = "../../outside"

    def request(
        self,
        service: str,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Reply:
        found = super().request(service, method, path.replace(self.NAME, "files"), parameters, headers, body)
        text = f"<Name>{self.NAME}</Name>".encode()
        return found._replace(body=found.body.replace(b"<Name>files</Name>", text))


def test_a_name_of_a_server_does_not_lead_out_of_the_folder(storage: lazulite.testing.Storage, tmp_path: Path) -> None:
    account = storage.account()
    with BlobServiceClient.from_connection_string(account.connection_string) as service:
        service.create_container("files").upload_blob("a", b"inside")
    with HostileSender(account.connection_string) as sender:
        write_state(sender, tmp_path / "state", None, lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert [path.read_bytes() for path in (tmp_path / "state").rglob("*-a")] == [b"inside"]


def test_a_state_is_not_written_over_another_one(storage: lazulite.testing.Storage, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("kept")
    with HttpSender(storage.connection_string) as sender, pytest.raises(FileExistsError):
        write_state(sender, tmp_path, None, lambda _: None)
    assert (tmp_path / FILE).read_text() == "kept"
