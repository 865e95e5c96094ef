"""The movies of the 2010-era samples: a table, inserts, a query by rating in pages, merge, replace, batch, delete."""

from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4

import pytest
from tests.server_process import Account

from .atom_client import AtomClient, Change, Properties, table_sas

MOVIES: list[tuple[str, str, float, int]] = [
    ("Action", "The Bourne Supremacy", 4.5, 2004),
    ("Action", "The Matrix & more", 5.0, 1999),
    ("Action", "Ocean's Eleven", 4.0, 2001),
    ("Comedy", "Amélie", 5.0, 2001),
    ("Comedy", "Dumb <and> Dumber", 2.0, 1994),
]


@pytest.fixture(name="client", params=[("2009-09-19", True), ("2009-09-19", False), ("2011-08-18", True)])
def _client(account: Account, request: pytest.FixtureRequest) -> Iterator[AtomClient]:
    version, lite = request.param
    client = AtomClient(account, version, lite=lite)
    yield client
    client.close()


@pytest.fixture(name="movies")
def _movies(client: AtomClient) -> Iterator[str]:
    name = f"Movies{uuid4().hex}"
    created = client.save(Change("POST", "Tables", {"TableName": name}))
    assert created.status == 201
    assert created.headers["Content-Type"] == "application/atom+xml;type=entry;charset=utf-8"
    assert created.entries == [{"TableName": name}]
    yield name
    assert client.save(Change("DELETE", f"Tables('{name}')")).status == 204
    assert client.get(f"Tables('{name}')").error == "ResourceNotFound"


def movie(category: str, title: str, rating: float, year: int) -> Properties:
    return {
        "PartitionKey": category,
        "RowKey": title,
        "Timestamp": "0001-01-01T00:00:00",
        "Rating": rating,
        "ReleaseYear": year,
        "Language": None,
        "IsFavorite": rating > 4.5,
    }


def address(table: str, category: str, title: str) -> str:
    doubled = quote(title.replace("'", "''"), safe="")
    return f"{table}(PartitionKey='{category}',RowKey='{doubled}')"


def insert_all(client: AtomClient, table: str) -> None:
    for each in MOVIES:
        assert client.save(Change("POST", table, movie(*each))).status == 201


def titles(client: AtomClient, table: str, filter_text: str, top: int) -> list[str | None]:
    """Every title that matches, page by page."""
    found: list[str | None] = []
    query = f"$filter={quote(filter_text)}&$top={top}"
    more = ""
    while True:
        answer = client.get(f"{table}()", query + more)
        assert answer.status == 200
        assert len(answer.entries) <= top
        found += [entry["RowKey"] for entry in answer.entries]
        partition = answer.headers.get("x-ms-continuation-NextPartitionKey")
        if partition is None:
            return found
        more = f"&NextPartitionKey={partition}&NextRowKey={answer.headers['x-ms-continuation-NextRowKey']}"


def test_insert_and_read_back(client: AtomClient, movies: str) -> None:
    insert_all(client, movies)
    for category, title, rating, year in MOVIES:
        answer = client.get(address(movies, category, title))
        assert answer.status == 200
        (found,) = answer.entries
        assert (found["PartitionKey"], found["RowKey"]) == (category, title)
        assert (float(found["Rating"] or ""), found["ReleaseYear"]) == (rating, str(year))
        assert found["IsFavorite"] == str(rating > 4.5).lower()
        assert "Language" not in found
        assert answer.etags == [answer.headers["ETag"]]
    again = client.save(Change("POST", movies, movie(*MOVIES[0])))
    assert (again.status, again.error) == (409, "EntityAlreadyExists")


def test_query_by_rating(client: AtomClient, movies: str) -> None:
    insert_all(client, movies)
    best = ["The Bourne Supremacy", "The Matrix & more", "Amélie"]
    for top in (1, 2, 1000):
        assert titles(client, movies, "Rating gt 4.0", top) == best
    assert titles(client, movies, "PartitionKey eq 'Action' and Rating ge 5.0", 10) == ["The Matrix & more"]
    assert titles(client, movies, "RowKey eq 'Ocean''s Eleven'", 10) == ["Ocean's Eleven"]
    assert titles(client, movies, "IsFavorite eq true and ReleaseYear lt 2000", 10) == ["The Matrix & more"]
    assert titles(client, movies, "Rating gt 5.0", 10) == []


def test_merge_and_replace(client: AtomClient, movies: str) -> None:
    insert_all(client, movies)
    category, title = "Action", "Ocean's Eleven"
    path = address(movies, category, title)
    keys = {"PartitionKey": category, "RowKey": title}
    (tag,) = client.get(path).etags
    merged = client.save(Change("MERGE", path, {**keys, "Rating": 4.8}, tag))
    assert (merged.status, merged.body) == (204, b"")
    (found,) = client.get(path).entries
    assert (found["Rating"], found["ReleaseYear"]) == ("4.8", "2001")
    stale = client.save(Change("PUT", path, {**keys, "Rating": 1.0}, tag))
    assert (stale.status, stale.error) == (412, "UpdateConditionNotSatisfied")
    assert client.save(Change("PUT", path, {**keys, "Rating": 3.0}, merged.headers["ETag"])).status == 204
    (found,) = client.get(path).entries
    assert set(found) == {"PartitionKey", "RowKey", "Timestamp", "Rating"}
    assert client.save(Change("MERGE", path, {**keys, "Language": "en"}, "*")).status == 204


def test_changes_saved_together(client: AtomClient, movies: str) -> None:
    insert_all(client, movies)
    category = "Action"
    changes = [
        Change("POST", movies, movie(category, "Ronin", 4.0, 1998)),
        Change("MERGE", address(movies, category, "Ocean's Eleven"), {"Rating": 5.0}, "*"),
        Change("DELETE", address(movies, category, "The Matrix & more"), if_match="*"),
    ]
    answer = client.save_together(changes)
    assert answer.status == 202
    assert [answer.body.count(line) for line in (b"HTTP/1.1 201 Created", b"HTTP/1.1 204 No Content")] == [1, 2]
    after = ["Ocean's Eleven", "Ronin", "The Bourne Supremacy"]
    assert titles(client, movies, "PartitionKey eq 'Action'", 10) == after
    rejected = client.save_together(
        [
            Change("DELETE", address(movies, category, "Ronin"), if_match="*"),
            changes[1]._replace(path=address(movies, category, "Nowhere")),
        ]
    )
    assert rejected.status == 202
    assert b"HTTP/1.1 404 Not Found" in rejected.body
    assert b"<code>ResourceNotFound</code>" in rejected.body
    assert titles(client, movies, "PartitionKey eq 'Action'", 10) == after


def test_unconditional_delete(client: AtomClient, movies: str) -> None:
    insert_all(client, movies)
    path = address(movies, "Comedy", "Dumb <and> Dumber")
    rejected = client.save(Change("DELETE", path))
    assert (rejected.status, rejected.error) == (400, "InvalidInput")
    assert client.save(Change("DELETE", path, if_match="*")).status == 204
    gone = client.save(Change("DELETE", path, if_match="*"))
    assert (gone.status, gone.error) == (404, "ResourceNotFound")


def test_tables_are_listed(client: AtomClient, movies: str) -> None:
    answer = client.get("Tables", f"$filter=TableName%20eq%20'{movies}'")
    assert answer.headers["Content-Type"] == "application/atom+xml;type=feed;charset=utf-8"
    assert answer.entries == [{"TableName": movies}]


def test_a_shared_access_signature_of_2012(client: AtomClient, movies: str, account: Account) -> None:
    insert_all(client, movies)
    guest = AtomClient(account, "2012-02-12", sas=table_sas(account, movies, "ra", "Action"))
    assert titles(guest, movies, "Rating gt 0.0", 2) == ["Ocean's Eleven", "The Bourne Supremacy", "The Matrix & more"]
    assert guest.save(Change("POST", movies, movie("Action", "Ronin", 4.0, 1998))).status == 201
    assert guest.get(address(movies, "Action", "Ronin")).status == 200
    for beyond in (
        Change("POST", movies, movie("Comedy", "Big", 4.0, 1988)),
        Change("DELETE", address(movies, "Action", "Ronin"), if_match="*"),
        Change("DELETE", f"Tables('{movies}')"),
    ):
        rejected = guest.save(beyond)
        assert (rejected.status, rejected.error) == (404, "ResourceNotFound")
    guest.close()


def test_a_wrong_signature_is_rejected_in_xml(account: Account) -> None:
    client = AtomClient(account._replace(key="AAAA"), "2009-09-19", lite=True)
    answer = client.get("Tables")
    client.close()
    assert (answer.status, answer.error) == (403, "AuthenticationFailed")
