import json
import re

import pytest

from lazulite.app.registry import SPACES
from lazulite.engine.content.contract import Claim, ContentId
from lazulite.engine.key_encoding import encode_key
from lazulite.records.spaces import COUNTERS, FIRST_FREE_SPACE, SERVICE_PROPERTIES, TABLES
from lazulite.records.verification import PROBLEMS_MAX, VerificationReport, verify
from lazulite.service.properties import ServiceProperties
from lazulite.table.catalog import Table
from lazulite.table.indexes.definition import Index, Indexes, Scope, State
from lazulite.table.indexes.encoding import encode_value
from lazulite.table.model.edm import TYPES
from lazulite.table.model.row import Property, assemble, encode_keys, encode_properties

TIMESTAMP = 134_000_000_000_000_000
SPACE = FIRST_FREE_SPACE
ORDERS = Table("Orders", SPACE)

Rows = dict[bytes, bytes]


def no_content(content: ContentId, _: Claim) -> int:
    raise AssertionError(content)


def entity(row: str, ticks: int = TIMESTAMP, key: str = "p") -> bytes:
    properties = {"Age": Property(TYPES["Edm.Int32"], "23"), "Id": Property(TYPES["Edm.Int64"], '"5"')}
    return assemble(ticks, encode_keys(key, row), encode_properties(properties))


def store() -> Rows:
    return {
        encode_key(COUNTERS, "spaces", "next"): (SPACE + 128).to_bytes(8, "big"),
        encode_key(SERVICE_PROPERTIES, "orders", "table"): json.dumps(ServiceProperties().to_json()).encode(),
        encode_key(TABLES, "orders", f"!{SPACE + 1}"): b"",
        encode_key(TABLES, "orders", "orders"): ORDERS.to_bytes(),
        encode_key(SPACE, "p", "1"): entity("1"),
        encode_key(SPACE, "p", "2\0é"): entity("2\0é"),
        encode_key(SPACE + 1, "gone", ""): b"whatever",
    }


def found(rows: Rows, timestamp: int = TIMESTAMP) -> VerificationReport:
    *_, last = verify(sorted(rows.items()), timestamp, SPACES, no_content)
    return last


def test_a_whole_store_is_counted() -> None:
    findings = found(store())
    counts = {"tables": 1, "entities": 2, "queues": 0, "messages": 0, "containers": 0, "blobs": 0}
    assert (findings.counts, findings.rows, findings.problems) == (counts, 7, [])


def test_an_empty_store_is_whole() -> None:
    assert found({}).problem_count == 0


def test_the_checksum_is_of_the_contents() -> None:
    whole = store()
    assert found(whole).checksum == found(store()).checksum
    without_drop = {key: value for key, value in whole.items() if value not in (b"", b"whatever")}
    assert found(without_drop).checksum == found(whole).checksum, "what is dropped is no content"
    without_entity = dict(whole)
    del without_entity[encode_key(SPACE, "p", "1")]
    later = whole | {encode_key(SPACE, "p", "1"): entity("1", TIMESTAMP - 1)}
    assert len({found(rows).checksum for rows in (whole, without_entity, later)}) == 3


KEY = encode_key(SPACE, "p", "1")
TABLE_KEY = encode_key(TABLES, "orders", "orders")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (KEY, entity("1", TIMESTAMP + 1), "Timestamp"),
        (KEY, entity("2"), "not as Lazulite writes it"),
        (KEY, entity("1", key="q"), "not as Lazulite writes it"),
        (KEY, entity("1")[:-1], "not as Lazulite|ValueError"),
        (KEY, entity("1") + b" ", "not as Lazulite|invalid literal"),
        (KEY, b"", "format"),
        (KEY, b"\x02" + entity("1")[1:], "format"),
        (KEY, entity("1").replace(b":23", b":2x"), "ValueError"),
        (KEY, entity("1").replace(b'"5"', b'"x"'), "ValueError"),
        (KEY[:8] + b"p", entity("1"), "ValueError"),
        (KEY[:8] + b"\xff\x00", entity("1"), "Unicode"),
        (encode_key(SPACE + 7, "p", "1"), entity("1"), "no catalog names"),
        (encode_key(99, "p", "1"), b"", "has an unknown row"),
        (encode_key(COUNTERS, "spaces", "other"), b"", "has an unknown row"),
        (encode_key(SERVICE_PROPERTIES, "orders", "table"), b"{}", "KeyError"),
        (TABLE_KEY, b"{", "JSON"),
        (TABLE_KEY, b"[]", "TypeError"),
        (TABLE_KEY, Table("Other", SPACE).to_bytes(), "is called Other"),
        (TABLE_KEY, Table("Orders", SPACE + 500).to_bytes(), "not its own"),
        (TABLE_KEY, Table("Orders", 5).to_bytes(), "not its own"),
        (encode_key(TABLES, "orders", "twin"), Table("Twin", SPACE).to_bytes(), "not its own"),
        (encode_key(TABLES, "orders", "!x"), b"", "ValueError"),
    ],
)
def test_what_is_wrong_is_said(key: bytes, value: bytes, problem: str) -> None:
    findings = found(store() | {key: value})
    assert findings.problem_count >= 1
    assert any(re.search(problem, text) for text in findings.problems), findings.problems


def test_problems_are_bounded() -> None:
    rows = {encode_key(SPACE + 7, "p", str(number)): b"" for number in range(PROBLEMS_MAX + 5)}
    findings = found(rows)
    assert (len(findings.problems), findings.problem_count) == (PROBLEMS_MAX, PROBLEMS_MAX + 5)


def indexed(*entries: str, state: State = State.READY) -> Rows:
    """Return the store with an index on Age, and these entries of the partition."""
    table = Table("Orders", SPACE, indexes=Indexes(1, (Index("by_age", ("Age",), Scope.PARTITION, SPACE + 2, state),)))
    rows = {encode_key(SPACE + 2, "p", encode_value(23) + entry): b"" for entry in entries}
    return {**store(), encode_key(TABLES, "orders", "orders"): table.to_bytes(), **rows}


def test_an_index_with_the_entry_of_each_row_is_whole() -> None:
    findings = found(indexed("1", "2\0é"))
    assert findings.problem_count == 0
    assert findings.checksum != found(store()).checksum


@pytest.mark.parametrize("entries", [(), ("1",), ("1", "2"), ("1", "2\0é", "3")])
def test_an_index_with_other_entries_is_to_be_built_again(entries: tuple[str, ...]) -> None:
    findings = found(indexed(*entries))
    (problem,) = findings.problems
    assert problem.startswith(
        f"index by_age of Orders has {len(entries)} entries, not the 2 of its rows; build it again"
    )
    assert found(indexed(*entries, state=State.BUILDING)).problem_count == 0


def test_a_row_that_is_no_entry_is_a_problem() -> None:
    rows = indexed("1", "2\0é")
    rows[encode_key(SPACE + 2, "p", "rubbish")] = b""
    rows[encode_key(SPACE + 2, "p", encode_value(5) + "value")] = b"value"
    problems = " ".join(found(rows).problems)
    assert "not an entry of an index" in problems
    assert "has a value" in problems


def test_an_index_with_the_space_of_another_is_a_problem() -> None:
    table = Table("Orders", SPACE, indexes=Indexes(1, (Index("by_age", ("Age",), Scope.TABLE, SPACE),)))
    rows = {**store(), encode_key(TABLES, "orders", "orders"): table.to_bytes()}
    assert "which is not its own" in found(rows).problems[0]
