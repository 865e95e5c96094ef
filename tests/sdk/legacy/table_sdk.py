"""What the programs of `TableService` share: the SDKs between 2016 and 2020, which speak JSON.

These are azure-storage 0.3x and azure-cosmosdb-table.

They differ in where their modules are and in three faults of the older ones, named by constants below. A case shows
each fault, so that it is known for the SDK's.
"""

from datetime import UTC, datetime, timedelta

from cases import CONNECTION_STRING, fields, unique_name
from rejections import without_retries

try:
    from azure.cosmosdb.table import (
        EdmType,
        EntityProperty,
        TableBatch,
        TablePayloadFormat,
        TablePermissions,
        TableService,
    )
    from azure.cosmosdb.table.common import models
    from azure.cosmosdb.table.models import AzureBatchOperationError, AzureBatchValidationError, Entity

    VERSION = "1.0"
except ImportError:
    from azure.storage import __version__ as VERSION  # noqa: N812
    from azure.storage import models
    from azure.storage.table import (
        AzureBatchOperationError,
        AzureBatchValidationError,
        EdmType,
        Entity,
        EntityProperty,
        TableBatch,
        TablePayloadFormat,
        TablePermissions,
        TableService,
    )

__all__ = [
    "ENDPOINT",
    "ESCAPES_QUOTES",
    "EVERYTHING",
    "FOLLOWS_PATHS",
    "PAST",
    "SENDS_EMPTY_KEYS",
    "SERVICE",
    "SOON",
    "STALE",
    "AzureBatchOperationError",
    "AzureBatchValidationError",
    "EdmType",
    "Entity",
    "EntityProperty",
    "Table",
    "TableBatch",
    "TablePayloadFormat",
    "TablePermissions",
    "TableService",
    "connect",
    "contents",
    "entity",
    "grant",
    "models",
    "own_rejection",
    "properties",
    "typed",
]

ESCAPES_QUOTES = VERSION == "1.0"
"""Doubles the quotes of a key in addresses. Without, the caller has to."""
FOLLOWS_PATHS = VERSION == "1.0"
"""Asks for the second page of a listing where it asked for the first. Without, the account is lost out of a path-style
address, whatever the server; asking for each page again works."""
SENDS_EMPTY_KEYS = VERSION >= "0.36"

STALE = "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\""
SOON = datetime.now(UTC).replace(tzinfo=None, microsecond=0) + timedelta(hours=1)
PAST = SOON - timedelta(hours=2)
ENDPOINT = fields()["TableEndpoint"].rstrip("/")
EVERYTHING = TablePermissions(query=True, add=True, update=True, delete=True)
METADATA = ("PartitionKey", "RowKey", "Timestamp", "etag")


def connect(connection_string=CONNECTION_STRING):
    """A service that never retries."""
    return without_retries(TableService(connection_string=connection_string))


def grant(sas):
    """A service that holds nothing but a SAS."""
    return connect(f"TableEndpoint={ENDPOINT};SharedAccessSignature={sas}")


SERVICE = connect()


class Table:
    """A table of its own for one case."""

    def __enter__(self):
        self.name = unique_name()
        assert SERVICE.create_table(self.name) is True
        return self.name

    def __exit__(self, *failure):
        assert SERVICE.delete_table(self.name) is True


def entity(row="r", partition="p", **properties):
    return dict(properties, PartitionKey=partition, RowKey=row)


def properties(found):
    """What the user stored: neither keys nor metadata, and integers without their wrapper."""
    plain = lambda value: value.value if isinstance(value, EntityProperty) else value  # noqa: E731
    return {name: plain(value) for name, value in found.items() if name not in METADATA}


def contents(table):
    return {found.RowKey: properties(found) for found in SERVICE.query_entities(table)}


def own_rejection(act, *arguments):
    """Expect that the SDK rejects by itself."""
    try:
        act(*arguments)
    except ValueError:
        return
    raise AssertionError("the SDK did not reject")


def typed(kind, value):
    return EntityProperty(kind, value)
