"""Reference §5.4: Timestamp and ETag are two spellings of one value, and every write makes a larger one."""

import re

import pytest

from .batches import insert, run
from .tables import Table, entity

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,6}[1-9])?Z")


def tag_of(timestamp: str) -> str:
    """The ETag that a displayed Timestamp spells."""
    return "W/\"datetime'" + timestamp.replace(":", "%3A") + "'\""


def order(timestamp: str) -> str:
    """A timestamp with all its digits, so that text order is time order."""
    whole, _, fraction = timestamp.rstrip("Z").partition(".")
    return f"{whole}.{fraction:0<7}"


def test_the_header_the_member_and_the_timestamp_agree(table: Table) -> None:
    echo = table.insert(entity("p", "r")).expect(201)
    read = table.get("p", "r").expect(200)
    listed = table.page().rows[0]
    timestamp = read.json()["Timestamp"]
    assert TIMESTAMP.fullmatch(timestamp)
    assert echo.json()["Timestamp"] == listed["Timestamp"] == timestamp
    tags = {echo.etag, echo.json()["odata.etag"], read.etag, read.json()["odata.etag"], listed["odata.etag"]}
    assert tags == {tag_of(timestamp)}


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
@pytest.mark.parametrize("condition", [None, "*"])
def test_the_tag_of_an_update_is_the_tag_that_reads_show(table: Table, method: str, condition: str | None) -> None:
    table.add(entity("p", "r"))
    answer = table.write(method, table.at("p", "r"), {"A": 1}, If_Match=condition).expect(204)
    assert table.get("p", "r").etag == answer.etag == tag_of(table.get("p", "r").json()["Timestamp"])


def test_every_write_is_later_even_if_it_changes_nothing(table: Table) -> None:
    table.add(entity("p", "r", A=1))
    seen = [order(table.get("p", "r").json()["Timestamp"])]
    for method in ("PUT", "MERGE", "PATCH") * 10:
        table.write(method, table.at("p", "r"), {"A": 1}).expect(204)
        seen.append(order(table.get("p", "r").json()["Timestamp"]))
    assert seen == sorted(set(seen))


def test_reading_changes_nothing(table: Table) -> None:
    table.add(entity("p", "r"))
    assert len({table.get("p", "r").etag for _ in range(3)}) == 1
    table.insert(entity("p", "r")).expect(409)
    table.write("PUT", table.at("p", "r"), {}, If_Match='W/"foo"').expect(412)
    assert len({table.get("p", "r").etag for _ in range(3)}) == 1


def test_a_deleted_and_inserted_entity_has_a_later_timestamp(table: Table) -> None:
    first = table.insert(entity("p", "r")).expect(201)
    table.write("DELETE", table.at("p", "r"), If_Match=first.etag).expect(204)
    second = table.insert(entity("p", "r")).expect(201)
    assert order(second.json()["Timestamp"]) > order(first.json()["Timestamp"])
    table.write("DELETE", table.at("p", "r"), If_Match=first.etag).expect(412)


def test_batch_parts_carry_the_tag_that_reads_show(table: Table) -> None:
    parts = run(table.client, insert(table, entity("p", "1")), insert(table, entity("p", "2")))
    tags = [row["odata.etag"] for row in table.page().rows]
    assert [part.header("ETag") for part in parts] == tags
    assert [tag_of(row["Timestamp"]) for row in table.page().rows] == tags


def test_nometadata_has_the_tag_in_the_header_only(table: Table) -> None:
    table.add(entity("p", "r"))
    answer = table.get("p", "r", accept="application/json;odata=nometadata").expect(200)
    assert "odata.etag" not in answer.json()
    assert answer.etag == tag_of(answer.json()["Timestamp"])
