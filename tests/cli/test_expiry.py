"""`lazulite expiry`: by a running server, with workers and without, and by a command alone."""

import json
import os
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableClient,
    TableServiceClient,
    generate_account_sas,
)

from lazulite.app.commands import EXPIRY_SET, ExpiryDeclaration
from lazulite.cli import main
from lazulite.control.command import ControlError
from lazulite.testing import server as storage_server
from tests.server_process import environment

from .test_serve import rejected, serving
from .test_serve_workers import BOTH

PAST, FUTURE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)


def printed(*arguments: str) -> str:
    """Run a command in this process; return what it prints."""
    out = StringIO()
    with redirect_stdout(out), patch.dict(os.environ, environment(), clear=True):
        assert main(arguments) == 0
    return out.getvalue()


def statuses(connection: HTTPConnection, path: str) -> set[int]:
    """Return the statuses of some reads by one connection."""
    found = set()
    for _ in range(4):
        connection.request("GET", path, headers={"Accept": "application/json"})
        response = connection.getresponse()
        response.read()
        found.add(response.status)
    return found


def test_repeated_reads_end_with_the_entity() -> None:
    """A template answers them, which looks into no row but this one."""
    now = datetime(2031, 1, 1, tzinfo=UTC)
    with storage_server(clock=lambda: now) as storage:
        account = storage.account()
        endpoint, key = account.endpoint, AzureNamedKeyCredential(account.name, account.key)
        kinds, permission = (
            ResourceTypes(container=True, object=True),
            AccountSasPermissions(read=True, add=True, create=True),
        )
        token = generate_account_sas(key, kinds, permission, now + timedelta(days=30), start=now)
        with TableServiceClient(endpoint, credential=AzureSasCredential(token)) as service:
            service.create_table("Orders").create_entity({"PartitionKey": "p", "RowKey": "r"})
        path = f"/{account.name}/Orders(PartitionKey='p',RowKey='r')?{token}"
        connection = HTTPConnection(endpoint.split("/")[2])
        assert statuses(connection, path) == {200}
        list(storage.control.stream(EXPIRY_SET, ExpiryDeclaration("orders", 86_400, account=account.name)))
        assert statuses(connection, path) == {200}
        now += timedelta(days=1, seconds=1)
        assert statuses(connection, path) == {404}
        connection.close()


def test_workers_follow_what_a_command_declares(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with serving(location, *BOTH, "--silent") as server:
        with TableServiceClient.from_connection_string(server.lines[1]) as service:
            table = service.create_table("Offers")
            table.create_entity({"PartitionKey": "p", "RowKey": "old", "Until": PAST})
            table.create_entity({"PartitionKey": "p", "RowKey": "new", "Until": FUTURE})
        for here in (("Offers", "--on", "Until"), ("OFFERS", "--on", "Until")):
            assert printed("expiry", "set", *here, "-l", str(location)) == ""
        for _ in range(4):  # As many connections, some at each worker.
            with TableClient.from_connection_string(server.lines[1], "Offers") as table:
                assert [each["RowKey"] for each in table.list_entities()] == ["new"]
                with pytest.raises(ResourceNotFoundError):
                    table.get_entity("p", "old")
                with pytest.raises(ResourceNotFoundError):
                    table.update_entity({"PartitionKey": "p", "RowKey": "old"})
                table.create_entity({"PartitionKey": "p", "RowKey": "old", "Until": PAST})
                with pytest.raises(ResourceExistsError):
                    table.create_entity({"PartitionKey": "p", "RowKey": "new"})
        assert server.stop()[0] == 0


def test_a_command_does_it_without_a_server(tmp_path: Path) -> None:
    location = tmp_path / "data"
    here = ("-l", str(location))
    with storage_server(location) as storage:
        service = TableServiceClient.from_connection_string(storage.connection_string)
        with service:
            service.create_table("Some")
            service.create_table("More")
    assert printed("expiry", "set", "Some", "--after", "90m", *here) == ""
    assert printed("expiry", "set", "More", "--on", "Until", *here) == ""
    assert printed("expiry", "list", *here) == "More: on Until\nSome: after 90m\n"
    listed = printed("expiry", "list", "--json", *here).splitlines()
    assert list(map(json.loads, listed)) == [{"table": "More", "on": "Until"}, {"table": "Some", "after_seconds": 5400}]
    assert printed("expiry", "drop", "some", *here) == ""
    assert "the entities of Some do not expire" in rejected(1, "expiry", "drop", "some", *here)
    assert "has no table None" in rejected(1, "expiry", "set", "None", "--after", "1d", *here)


def test_what_cannot_be_declared_is_rejected() -> None:
    with storage_server() as storage:
        for of in (ExpiryDeclaration("Some"), ExpiryDeclaration("Some", on="RowKey"), ExpiryDeclaration("Some", -1)):
            with pytest.raises(ControlError, match="expire"):
                list(storage.control.stream(EXPIRY_SET, of))
        with pytest.raises(ControlError, match="has no table"):
            list(storage.control.stream(EXPIRY_SET, ExpiryDeclaration("\ud800", 5)))
    for flags in ((), ("--after", "1d", "--on", "Until"), ("--after", "40000d"), ("--after", "0d")):
        assert "--after" in rejected(2, "expiry", "set", "Some", *flags)
