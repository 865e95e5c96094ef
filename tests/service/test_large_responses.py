"""Requests whose responses may have megabytes wait for their turn before they hold anything; others do not wait."""

from typing import Any

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.blob.service import BLOB
from lazulite.protocol.clock import system_clock
from lazulite.protocol.fields import Fields
from lazulite.protocol.message import Request, response_of
from lazulite.queue.service import QUEUE, QueueService
from lazulite.service.definition import ServiceDependencies
from lazulite.service.routing import PAGE
from lazulite.table.service import TABLE, TableService
from tests.fuzz.memory import MemoryEngine
from tests.table.client import ACCOUNT, ALL_PERMISSIONS, FOREVER

LARGE = {
    *("QueryTables", "QueryEntities", "ListQueues", "PeekMessages"),
    *("ListContainers", "ListBlobs", "FindBlobsByTags"),
}


def test_the_operations_with_large_responses() -> None:
    definitions: tuple[Any, ...] = (TABLE, QUEUE, BLOB)
    rows = [row for definition in definitions for row in definition.routes.rows]
    assert {row.operation for row in rows if row.large or row.deadline is PAGE} >= LARGE


@pytest.mark.parametrize(
    ("path", "turns"),
    [("people()", 1), ("Tables", 1), ("people(PartitionKey='p',RowKey='r')", 0), ("people()?comp=acl", 0)],
)
async def test_only_pages_wait_for_their_turn(path: str, turns: int) -> None:
    taken = 0

    async def begin_large(authenticated: bool) -> None:
        nonlocal taken
        assert authenticated
        taken += 1

    accounts = AccountDirectory({}, None)
    engine = MemoryEngine(system_clock)
    service = TableService(ServiceDependencies(engine=engine, accounts=accounts, begin_large=begin_large))
    path, _, query = path.partition("?")
    signed = "&".join(filter(None, (query, sign_account_sas(DEVELOPMENT_ACCOUNT, ALL_PERMISSIONS))))
    headers = {"host": "host", "accept": "application/json;odata=nometadata"}
    await response_of(service, Request("GET", f"/{ACCOUNT}/{path}", signed, headers, b"", id="id"))
    assert taken == turns


async def test_a_peek_with_a_plan_waits_for_its_turn() -> None:
    taken = 0

    async def begin_large(_: bool) -> None:
        nonlocal taken
        taken += 1

    accounts, engine = AccountDirectory({}, None), MemoryEngine(system_clock)
    service = QueueService(ServiceDependencies(engine=engine, accounts=accounts, begin_large=begin_large))
    token = AccountSas(services="q", resource_types="sco", permission="rwdlacup", expiry=FOREVER)
    sas = sign_account_sas(DEVELOPMENT_ACCOUNT, token)
    headers = Fields.of({"host": "host", "x-ms-version": "2021-02-12"})
    await response_of(service, Request("PUT", f"/{ACCOUNT}/jobs", sas, headers, b"", id="id"))
    for _ in range(5):
        peek = Request("GET", f"/{ACCOUNT}/jobs/messages", f"peekonly=true&{sas}", headers, b"", id="id")
        assert (await response_of(service, peek)).status == 200
    assert (taken, service.plans.hits) == (5, 3)
    await engine.close()
