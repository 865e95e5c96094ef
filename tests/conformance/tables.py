"""A table under test: the addresses of its entities and the requests that most tests make."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

from .answers import Answer
from .client import MINIMAL, Client, HeaderChanges

Entity = dict[str, Any]
KEYS: Entity = {"PartitionKey": "p", "RowKey": "r"}
STALE = "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\""
"""A well-formed tag that no entity of ours has."""


def entity(partition: str = "p", row: str = "r", /, **properties: Any) -> Entity:
    """An entity with its keys first."""
    return {"PartitionKey": partition, "RowKey": row, **properties}


def key_text(text: str) -> str:
    """A key as it stands between the quotes of a URL: quotes doubled, everything else percent-encoded."""
    return quote(text.replace("'", "''"), safe="'")


def predicate(partition: str, row: str) -> str:
    """`(PartitionKey='…',RowKey='…')`, encoded."""
    return f"(PartitionKey='{key_text(partition)}',RowKey='{key_text(row)}')"


class Page(NamedTuple):
    """One page of a query and the query text that leads to the next, empty when there is none."""

    rows: list[Entity]
    next: str


@dataclass(frozen=True)
class Table:
    """A table that exists."""

    client: Client
    name: str

    @property
    def path(self) -> str:
        """The address of the entity set."""
        return f"/{self.name}"

    def at(self, partition: str = "p", row: str = "r") -> str:
        """The address of an entity."""
        return self.path + predicate(partition, row)

    def insert(self, content: Entity | str, query: str = "", **headers: str | None) -> Answer:
        """POST an entity, or a body as it stands."""
        return self.write("POST", self.path, content, query, **headers)

    def write(
        self, method: str, path: str, content: Entity | str | None = None, query: str = "", **headers: str | None
    ) -> Answer:
        """Send a body to a path; `If_Match="*"` is the header If-Match."""
        body = json.dumps(content) if isinstance(content, dict) else content
        changes: HeaderChanges = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.send(method, path, query, headers=changes, body=body)

    def add(self, *contents: Entity) -> None:
        """Insert entities, all of which must be accepted."""
        for content in contents:
            self.insert(content, Prefer="return-no-content").expect(204)

    def get(self, partition: str = "p", row: str = "r", query: str = "", *, accept: str = MINIMAL) -> Answer:
        """A point query."""
        return self.client.send("GET", self.at(partition, row), query, headers={"Accept": accept})

    def query(self, query: str = "", *, accept: str = MINIMAL) -> Answer:
        """A collection query; `query` is raw query text."""
        return self.client.send("GET", f"{self.path}()", query, headers={"Accept": accept})

    def filter(self, text: str) -> Answer:
        """A collection query by a filter in plain text."""
        return self.query(f"$filter={quote(text, safe='')}")

    def page(self, query: str = "") -> Page:
        """One page of a collection query."""
        return page(self.query(query).expect(200))

    def row_keys(self, filter_text: str = "") -> list[str]:
        """The row keys of one page of a query by filter."""
        answer = self.filter(filter_text).expect(200)
        return [row["RowKey"] for row in answer.json()["value"]]


def page(answer: Answer) -> Page:
    """Read a page and its continuation headers."""
    tokens = {
        name: answer.header(f"x-ms-continuation-{name}") for name in ("NextPartitionKey", "NextRowKey", "NextTableName")
    }
    parts = [f"{name}={quote(value, safe='')}" for name, value in tokens.items() if value is not None]
    return Page(answer.json()["value"], "&".join(parts))


def new_name() -> str:
    """A new table name."""
    return f"c{uuid4().hex}"


def new_table(client: Client) -> Iterator[Table]:
    """The body of a fixture: a table of a new name, deleted afterwards."""
    table = Table(client, new_name())
    answer = client.send(
        "POST", "/Tables", headers={"Prefer": "return-no-content"}, body=f'{{"TableName":"{table.name}"}}'
    )
    answer.expect(204)
    yield table
    client.send("DELETE", f"/Tables('{table.name}')").expect(204)
