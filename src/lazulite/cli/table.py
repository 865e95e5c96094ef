"""`lazulite table`: the tables of a running server and their entities, a line of JSON each."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from lazulite.cli.errors import CommandError
from lazulite.cli.service_client import ServiceAccess, ServiceClient

ACCESS = ServiceAccess("table", "rwdlacu", safe="%()=',")
"""The keys in a path are encoded already, as a key may have a slash."""
_STANDARD = "-"
"""In place of an entity: standard input."""
_HEADERS = {
    "Accept": "application/json;odata=minimalmetadata",
    "Content-Type": "application/json",
    "DataServiceVersion": "3.0;NetFx",
    "MaxDataServiceVersion": "3.0;NetFx",
}
_CONTINUATIONS = {
    name: f"x-ms-continuation-{name.lower()}" for name in ("NextPartitionKey", "NextRowKey", "NextTableName")
}
"""Query parameter of the next page -> the response header with its value."""
_ENTITY_BYTES_MAX = 4 * 1024 * 1024


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Run the action that the command line names."""
    with ServiceClient.from_args(args, environ, ACCESS) as client:
        _ACTIONS[args.action](args, client)
    return 0


def _ls(_: Namespace, client: ServiceClient) -> None:
    for table in pages(client, "Tables", {}):
        print(table["TableName"])


def _create(args: Namespace, client: ServiceClient) -> None:
    client.send("POST", "Tables", None, _HEADERS, json.dumps({"TableName": args.table}).encode())


def _get(args: Namespace, client: ServiceClient) -> None:
    answer = client.send("GET", _entity(args.table, args.partition_key, args.row_key), None, _HEADERS)
    _print(json.loads(answer.body))


def _put(args: Namespace, client: ServiceClient) -> None:
    lines = [args.entity] if args.entity != _STANDARD else sys.stdin
    for text in filter(str.strip, lines):
        try:
            entity = json.loads(text[:_ENTITY_BYTES_MAX])
            keys = entity["PartitionKey"], entity["RowKey"]
        except (ValueError, LookupError, TypeError):
            raise CommandError("an entity is a line of JSON, an object with PartitionKey and RowKey", 2) from None
        client.send("PUT", _entity(args.table, *map(str, keys)), None, _HEADERS, json.dumps(entity).encode())


def _query(args: Namespace, client: ServiceClient) -> None:
    given = {"$filter": args.filter, "$select": args.select}
    left = args.top
    for entity in pages(client, f"{args.table}()", given):
        _print(entity)
        left -= 1
        if left == 0:
            return


def _rm(args: Namespace, client: ServiceClient) -> None:
    if args.partition_key is None:
        if not args.yes:
            raise CommandError(f"pass --yes to delete the table {args.table} with all its entities", 2)
        client.send("DELETE", f"Tables('{args.table}')", None, _HEADERS)
        return
    if args.row_key is None:
        raise CommandError("an entity is named by its PartitionKey and its RowKey", 2)
    client.send("DELETE", _entity(args.table, args.partition_key, args.row_key), None, {**_HEADERS, "If-Match": "*"})


def _entity(table: str, partition_key: str, row_key: str) -> str:
    keys = (quote(key.replace("'", "''"), safe="") for key in (partition_key, row_key))
    return "{}(PartitionKey='{}',RowKey='{}')".format(table, *keys)


def pages(client: ServiceClient, path: str, given: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """Yield what a list or a query has, page after page. Raises as `ServiceClient.send`."""
    marks: dict[str, str] = {}
    while True:
        answer = client.send("GET", path, {**given, **marks}, _HEADERS)
        yield from json.loads(answer.body)["value"]
        marks = {name: answer.headers[mark] for name, mark in _CONTINUATIONS.items() if mark in answer.headers}
        if not marks:
            return


def _print(entity: Mapping[str, object]) -> None:
    """Print an entity so that `put` can store it elsewhere."""
    own = {name: value for name, value in entity.items() if not name.startswith("odata.")}
    print(json.dumps(own, ensure_ascii=False))


_ACTIONS = {"ls": _ls, "create": _create, "get": _get, "put": _put, "query": _query, "rm": _rm}
