"""A server with data for people to look at, by official SDKs, and the paths of all pages."""

import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from azure.data.tables import EdmType, EntityProperty, TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from lazulite.testing import Storage, server
from lazulite.ui.calls import Route, link
from lazulite.ui.routes import ROUTES
from tests.ui.explorer import another_link, explorer

ACCOUNT = "devstoreaccount1"
HOSTILE = "<script>alert(1)<b>\"'&\u202eabc"
VALUES = {"account": ACCOUNT, "table": "Orders", "queue": "work", "container": "photos"}
"""A value for each parameter of a path. Pages of numbers, such as jobs, have journeys of their own."""
QUERIES: Mapping[str, Mapping[str, str]] = {
    "/{account}/heat": {"name": "Orders", "last": "600"},
    "/{account}/heat/advice": {"name": "Orders"},
    "/{account}/partitions": {"name": "Orders"},
    "/{account}/blobs/{container}/blob": {"name": "2026/a.txt"},
}
"""The query of pages that show more with one."""
ELSEWHERE = ("", "message.html")
"""Templates of pages that need what a server gives out, such as the receipt of a message; "": a download."""
_SEED = 39


class Explored(NamedTuple):
    """A server whose explorer is open."""

    storage: Storage
    location: Path

    @property
    def link(self) -> str:
        """A new link that signs in once."""
        return another_link(self.storage)


@contextmanager
def explored_server(location: Path) -> Iterator[Explored]:
    """Serve some data, and its explorer, inside the block."""
    with server(location, meter=True) as storage, explorer(storage):
        fill(storage)
        yield Explored(storage, location)


def fill(storage: Storage, rows: int = 60) -> None:
    """Put some data into the development account, and add another account without data."""
    storage.account("empty")
    tables = TableServiceClient.from_connection_string(storage.connection_string)
    orders = tables.create_table("Orders")
    numbers = random.Random(_SEED)
    for number in range(rows):
        customer = HOSTILE if number == 0 else f"customer-{numbers.randrange(12):02}"
        orders.upsert_entity(
            {
                "PartitionKey": customer,
                "RowKey": f"{number:05}",
                "Total": numbers.random() * 100,
                "Count": EntityProperty(2**53 + number, EdmType.INT64),
                "Paid": number % 3 == 0,
                "At": datetime(2026, 11, 1, 12, number % 60, tzinfo=UTC),
                "Id": UUID(int=number),
                "Note": HOSTILE if number == 0 else "",
                "Photo": b"\x00\xff" * 8,
            }
        )
    list(orders.query_entities("PartitionKey eq 'customer-01'"))
    tables.create_table("Customers")
    queues = QueueServiceClient.from_connection_string(storage.connection_string)
    for name in ("work", "work-poison"):
        queue = queues.create_queue(name)
        for number in range(5):
            queue.send_message(f"message {number} of {name} {HOSTILE}")
    blobs = BlobServiceClient.from_connection_string(storage.connection_string)
    photos = blobs.create_container("photos")
    for name, content in {"2026/a.txt": b"text", "2026/b.json": b'{"a": 1}', HOSTILE: b"<script>"}.items():
        photos.upload_blob(name, content)


def pages() -> Mapping[str, str]:
    """Return the template's name without its ending -> path of each page whose parameters are all known."""
    unknown = re.compile(r"\{(?!(?:" + "|".join(VALUES) + r")\})")
    known = [each for each in ROUTES if not unknown.search(each.path) and each.template not in ELSEWHERE]
    return {each.template.removesuffix(".html"): path_of(each) for each in known}


def path_of(route: Route) -> str:
    """Return a path of a page."""
    query = QUERIES.get(route.path, {})
    return link(route.path, **{name: value for name, value in VALUES.items() if f"{{{name}}}" in route.path}, **query)
