"""Bodies of transactions say what the SDK's say; answers are understood."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty, TableClient
from azure.data.tables._serialize import _add_entity_properties
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns.effects import changesets
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation
from lazulite_patterns.effects.wire import entity_json

PLAIN = (
    st.text()
    | st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.floats()
    | st.binary()
    | st.uuids()
    | st.datetimes(min_value=datetime(1601, 1, 1), timezones=st.just(UTC))
    | st.none()
)
TYPED = st.builds(EntityProperty, st.integers(-(2**63), 2**63 - 1), st.just(EdmType.INT64)) | st.sampled_from(
    [
        EntityProperty("2014-07-31T18:00:00.1234567Z", EdmType.DATETIME),
        EntityProperty(5, EdmType.DOUBLE),
        EntityProperty("NaN", EdmType.DOUBLE),
        EntityProperty(7, EdmType.INT32),
        EntityProperty("text", EdmType.STRING),
        EntityProperty(True, EdmType.BOOLEAN),
        EntityProperty(b"\x00", EdmType.BINARY),
        EntityProperty(UUID(int=3), EdmType.GUID),
        EntityProperty(None, EdmType.INT64),
    ]
)
IMPLIED = {"Edm.String", "Edm.Boolean", "Edm.Int32"}


@given(st.dictionaries(st.sampled_from("ABCD"), PLAIN | TYPED))
def test_values_are_written_as_the_sdk_writes_them(properties: dict[str, object]) -> None:
    sdk = _add_entity_properties(properties)
    sdk = {name: each for name, each in sdk.items() if not (name.endswith("@odata.type") and each in IMPLIED)}
    assert json.loads(entity_json(properties)) == sdk


@pytest.mark.parametrize(
    "value", [2**31, object(), EntityProperty(2**63, EdmType.INT64), EntityProperty(2**31, EdmType.INT32)]
)
def test_a_value_without_a_type_is_rejected_before_sending(value: object) -> None:
    with pytest.raises(TypeError):
        entity_json({"A": value})


def test_odd_keys_and_all_kinds_reach_their_rows(table_client: TableClient) -> None:
    driver = Driver({"t": table_client})
    partition = "it's 100 % é~\u4e2d\U0001f600&=+"
    keys = [EntityKey(partition, text) for text in ("'", " ", "(a,b)", "%25", "é", "--changeset")]
    inserted = driver.run(perform(Batch("t", tuple(Operation(Kind.INSERT, key, {"N": 1}) for key in keys))))
    changes = (
        Operation(Kind.REPLACE, keys[0], {"M": "\r\n--batch_"}, inserted[0]),
        Operation(Kind.MERGE, keys[1], {"M": 2}),
        Operation(Kind.PUT, keys[2], {"M": 2}),
        Operation(Kind.PUT_MERGE, keys[3], {"M": 2}),
        Operation(Kind.DELETE, keys[4], etag=inserted[4]),
        Operation(Kind.DELETE, keys[5]),
    )
    etags = driver.run(perform(Batch("t", changes)))
    rows = {each["RowKey"]: each for each in table_client.list_entities()}
    assert [sorted(rows[key.row_key]) for key in keys[:4]] == [
        *(["M", "PartitionKey", "RowKey"], ["M", "N", "PartitionKey", "RowKey"]),
        *(["M", "PartitionKey", "RowKey"], ["M", "N", "PartitionKey", "RowKey"]),
    ]
    assert len(rows) == 4
    assert [rows[key.row_key].metadata["etag"] for key in keys[:4]] == list(etags[:4])
    assert etags[4:] == ("", "")


def test_an_sdk_that_is_built_in_another_way_sends_the_transaction_itself(table_client: TableClient) -> None:
    class Other:
        table_name = table_client.table_name
        submit_transaction = table_client.submit_transaction

    operations = (Operation(Kind.PUT, EntityKey("p", "a"), {"N": 1}), Operation(Kind.PUT, EntityKey("p", "b")))
    other: Any = Other()
    assert len(Driver({"t": other}).run(perform(Batch("t", operations)))) == 2
    assert len(list(table_client.list_entities())) == 2


def answer(status: int, error: str = "") -> bytes:
    return (
        "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n"
        "--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f'HTTP/1.1 {status} Some\r\nContent-Type: application/json\r\nETag: W/"1"\r\n\r\n{error}\r\n'
        "--changesetresponse_2--\r\n--batchresponse_1--\r\n"
    ).encode()


def error(code: str, message: str) -> str:
    return json.dumps({"odata.error": {"code": code, "message": {"lang": "en-US", "value": message}}})


def test_answers_are_understood() -> None:
    assert changesets.etags_of(202, {}, answer(204)) == ('W/"1"',)
    with pytest.raises(Rejected) as rejected:
        changesets.etags_of(202, {}, answer(409, error("EntityAlreadyExists", "17:It exists.\nRequestId:1")))
    assert (rejected.value.status, rejected.value.code, rejected.value.index) == (409, "EntityAlreadyExists", 17)
    with pytest.raises(Rejected) as rejected:
        changesets.etags_of(403, {}, error("AuthorizationFailure", "No.").encode())
    assert (rejected.value.status, rejected.value.code, rejected.value.index) == (403, "AuthorizationFailure", None)
    for status, content in ((202, answer(503, error("ServerBusy", "0:Busy"))), (503, b"no json"), (202, b"")):
        with pytest.raises(ResultUnknown) as unknown:
            changesets.etags_of(status, {"Retry-After": "5"}, content)
        assert unknown.value.retry_after_seconds == (None if content == b"" else 5)
    with pytest.raises(ResultUnknown) as unknown:
        changesets.etags_of(500, {"Retry-After": "soon"}, b"")
    assert unknown.value.retry_after_seconds is None


def test_a_key_that_is_twice_in_a_transaction_is_rejected(table_client: TableClient) -> None:
    with pytest.raises(Rejected, match="InvalidDuplicateRow"):
        Driver({"t": table_client}).run(perform(Batch("t", (Operation(Kind.PUT, EntityKey("p", "a")),) * 2)))
