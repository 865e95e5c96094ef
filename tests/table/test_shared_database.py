"""Two services that share nothing but an engine: what either changes, the other one knows within two seconds."""

from collections.abc import Callable

import pytest

from lazulite.app.stores import CACHE_TTL_SECONDS as LIFETIME_SECONDS
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account, AccountDirectory
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.accounts.engine_store import AccountRow, AccountWatcher
from lazulite.auth.sas import sign_account_sas
from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Request, Response, response_of
from lazulite.records.catalog import KEPT_SECONDS, StoredAccessPolicy
from lazulite.service.definition import ServiceDependencies
from lazulite.service.properties import CorsRule, PropertiesUpdate
from lazulite.table.credentials import TableSas, sign_table_sas
from lazulite.table.service import TableService
from tests.fuzz.memory import MemoryEngine

from .client import ACCOUNT, ALL_PERMISSIONS, Client

SECONDS_MAX = 2.0
READERS = TableSas(table="people", permission="", policy_id="readers")


class World:
    """Two services and the second that both of them believe it is."""

    def __init__(self) -> None:
        self.engine: Engine = MemoryEngine(system_clock)
        self.now_s = 100.0
        self.one, self.other = self._client(LIFETIME_SECONDS), self._client(LIFETIME_SECONDS)

    def _client(self, seconds: float | None) -> Client:
        client = Client(self.engine)
        dependencies = ServiceDependencies(
            engine=self.engine,
            accounts=AccountDirectory({}),
            monotonic=lambda: self.now_s,
            cache_ttl_seconds=seconds,
        )
        client.service = TableService(dependencies)
        return client

    def pass_time(self) -> None:
        self.now_s += LIFETIME_SECONDS


@pytest.fixture(name="world")
async def _world() -> World:
    world = World()
    assert (await world.one("POST", "Tables", body={"TableName": "people"})).status == 201
    assert (await world.other("GET", "people")).status == 200  # Cached from now on.
    return world


def test_two_lifetimes_are_less_than_what_is_promised() -> None:
    assert LIFETIME_SECONDS * 2 <= SECONDS_MAX


async def test_a_table_that_is_gone(world: World) -> None:
    assert (await world.one("DELETE", "Tables('people')")).status == 204
    world.pass_time()
    for query in ("GET", "POST"):
        assert (await world.other(query, "people", body={"PartitionKey": "", "RowKey": ""})).status == 404


async def test_a_table_that_was_made_anew(world: World) -> None:
    assert (await world.one("DELETE", "Tables('people')")).status == 204
    assert (await world.one("POST", "Tables", body={"TableName": "people"})).status == 201
    world.pass_time()
    for number, client in enumerate((world.one, world.other)):
        entity = {"PartitionKey": "", "RowKey": str(number)}
        assert (await client("POST", "people", body=entity)).status == 201
    assert (await world.one("GET", "people(PartitionKey='',RowKey='1')")).status == 200


async def test_changes_of_tables_depend_on_no_memory(world: World) -> None:
    """Without any time passing."""
    assert (await world.one("DELETE", "Tables('people')")).status == 204
    assert (await world.other("POST", "Tables", body={"TableName": "people"})).status == 201
    assert (await world.other("GET", "people")).status == 200
    assert (await world.one("DELETE", "Tables('people')")).status == 204
    assert (await world.one("POST", "Tables", body={"TableName": "people"})).status == 201
    assert (await world.other("DELETE", "Tables('people')")).status == 204
    assert (await world.one("GET", "Tables")).body == b'{"value":[]}'


@pytest.mark.parametrize("changed", [(), (StoredAccessPolicy("readers", None, None, "a"),)])
async def test_a_policy_that_was_withdrawn(world: World, changed: tuple[StoredAccessPolicy, ...]) -> None:
    """Also of a token that was verified before."""
    one, other = world.one.service._context.catalog, world.other
    await one.set_policies(ACCOUNT, "people", [StoredAccessPolicy("readers", None, expiry(), "r")])
    world.pass_time()
    other.sas = sign_table_sas(DEVELOPMENT_ACCOUNT, READERS)
    assert (await other("GET", "people")).status == 200
    await one.set_policies(ACCOUNT, "people", changed)
    world.pass_time()
    assert (await other("GET", "people")).status == 403


def expiry() -> int:
    return system_clock() + 10**12


async def crossed(client: Client) -> list[str]:
    """What the service knows of CORS, by the answer to a request and by that to a preflight."""
    origin = {"origin": "http://site"}
    answers = [await client("GET", "people", headers=origin)]
    preflight = {**origin, "access-control-request-method": "GET"}
    answers.append(await response_of(client.service, Request("OPTIONS", f"/{ACCOUNT}/people", "", preflight, id="id")))
    return [allowed(answer) for answer in answers]


def allowed(answer: Response) -> str:
    return dict(answer.fields()).get("Access-Control-Allow-Origin", "")


async def test_service_properties(world: World) -> None:
    assert await crossed(world.other) == ["", ""]
    rule = CorsRule(("GET",), ("http://site",))
    properties = world.one.service._context.properties
    await properties.update(ACCOUNT, PropertiesUpdate(cors=(rule,)))
    world.pass_time()
    assert await crossed(world.other) == ["http://site"] * 2
    await properties.update(ACCOUNT, PropertiesUpdate(cors=()))
    world.pass_time()
    assert await crossed(world.other) == ["", ""]


async def test_a_key_that_was_replaced_ends_a_token_that_was_verified() -> None:
    world = World()
    row, directory = AccountRow(world.engine, "the database"), AccountDirectory({})
    watch = AccountWatcher(row, directory, print)
    keys = (b"first", b"second")
    await row.edit(lambda _: {ACCOUNT: StoredAccount(keys)})
    await watch.start()
    client = Client(world.engine, sas=sign_account_sas(Account(ACCOUNT, keys), ALL_PERMISSIONS))
    client.service = TableService(ServiceDependencies(engine=world.engine, accounts=directory))
    assert (await client("GET", "Tables")).status == 200
    await row.edit(lambda accounts: {**(accounts or {}), "items": StoredAccount(keys)})
    await watch.poll()
    assert (await client("GET", "Tables")).status == 200
    await row.edit(lambda accounts: {**(accounts or {}), ACCOUNT: StoredAccount((b"third", b"second"))})
    await watch.poll()
    assert (await client("GET", "Tables")).status == 403


@pytest.mark.parametrize(("seconds", "reads"), [(LIFETIME_SECONDS, 3), (None, 1)])
async def test_memory_spares_reads_for_its_lifetime_and_forever_without(
    seconds: float | None, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    await world.one("POST", "Tables", body={"TableName": "people"})
    client = world._client(seconds)
    catalog = client.service._context.catalog
    asked = counted(world.engine, monkeypatch)
    for _ in range(3):
        for _ in range(5):
            await catalog.get(ACCOUNT, "people")
        world.pass_time()
    assert asked() == reads


def counted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    count = 0
    read = engine.get

    async def get(space: int, partition: str, row: str) -> bytes | None:
        nonlocal count
        count += 1
        return await read(space, partition, row)

    monkeypatch.setattr(engine, "get", get)
    return lambda: count


async def test_entities_are_served_while_the_node_with_the_names_of_tables_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of an account are one partition of the database, and entities are others."""
    get, key = world.engine.get, "people(PartitionKey='p',RowKey='r')"

    async def away(space: int, partition: str, row: str) -> bytes | None:
        if partition == ACCOUNT:
            raise EngineUnavailableError("away")
        return await get(space, partition, row)

    rules = PropertiesUpdate(cors=(CorsRule(("GET",), ("http://site",)),))
    await world.one.service._context.properties.update(ACCOUNT, rules)
    world.pass_time()
    assert await crossed(world.other) == ["http://site"] * 2
    monkeypatch.setattr(world.engine, "get", away)
    for number in range(int(KEPT_SECONDS / LIFETIME_SECONDS)):
        assert (await world.other("PUT", key, body={"number": number})).status == 204
        assert f'"number":{number}'.encode() in (await world.other("GET", key)).body
        assert await crossed(world.other) == ["http://site"] * 2
        world.pass_time()
    assert (await world.other("POST", "Tables", body={"TableName": "others"})).status == 503
    for method in ("PUT", "GET"):
        assert (await world.other(method, key, body={})).status == 503
    monkeypatch.undo()
    assert (await world.other("GET", key)).status == 200
