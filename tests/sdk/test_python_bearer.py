"""The Python SDK with token credentials: roles, rejections, the challenge, and keys that rotate meanwhile."""

import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.data.tables import TableServiceClient, UpdateMode
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient
from tests.issuer import TENANT
from tests.tokens import READER, SigningKey, signing_key

from .bearers import AsyncCredential, Credential, Secured, secured
from .failures import rejected

SCOPE = "https://storage.azure.com/.default"
CHALLENGES = "2020-12-06"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("bearer")) as running:
        yield running


def client(server: Secured, token: str, **options: Any) -> TableServiceClient:
    credential = Credential(lambda _: token)
    return TableServiceClient(server.endpoint, credential=credential, **server.options(), **options)


def row(name: str, **properties: Any) -> dict[str, Any]:
    return {"PartitionKey": "p", "RowKey": name} | properties


def test_a_contributor_does_everything_with_tables_and_entities(server: Secured) -> None:
    with client(server, server.token()) as service:
        table = service.create_table(f"t{uuid4().hex}")
        table.create_entity(row("a", Value=1))
        table.upsert_entity(row("b", Value=1), UpdateMode.REPLACE)
        table.upsert_entity(row("b", Other=2), UpdateMode.MERGE)
        table.update_entity(row("a", Value=3), UpdateMode.REPLACE)
        table.submit_transaction([("create", row(f"c{number}")) for number in range(5)])
        table.delete_entity("p", "a")
        assert table.get_entity("p", "b") == row("b", Value=1, Other=2)
        pages = [list(page) for page in table.query_entities("PartitionKey eq 'p'", results_per_page=2).by_page()]
        assert [len(page) for page in pages] == [2, 2, 2]
        assert table.table_name in [item.name for item in service.list_tables()]
        service.delete_table(table.table_name)


def test_a_reader_reads(server: Secured) -> None:
    with client(server, server.token()) as owner, client(server, server.token(roles=[READER])) as service:
        name = owner.create_table(f"t{uuid4().hex}").table_name
        owner.get_table_client(name).create_entity(row("a"))
        with service.get_table_client(name) as table:
            assert table.get_entity("p", "a") == row("a")
            assert list(table.list_entities()) == [row("a")]
            assert name in [item.name for item in service.list_tables()]
            for write in (table.create_entity, table.upsert_entity, table.update_entity, table.delete_entity):
                with rejected(403):
                    write(row("a"))
            with rejected(403):
                table.submit_transaction([("upsert", row("a"))])
            with rejected(403):
                table.delete_table()
            with rejected(403):
                service.create_table("another")
        owner.delete_table(name)


def test_what_only_a_key_may(server: Secured) -> None:
    with client(server, server.token()) as service:
        table = service.create_table(f"t{uuid4().hex}")
        with rejected(403):
            table.get_table_access_policy()
        with rejected(403):
            table.set_table_access_policy({})
        with rejected(403):
            service.get_service_properties()
        with rejected(403):
            service.set_service_properties()
        table.delete_table()


@pytest.mark.parametrize("roles", [None, [], ["Owner"]])
def test_without_a_role_nothing_is_permitted(server: Secured, roles: object) -> None:
    with client(server, server.token(roles=roles)) as service, rejected(403):
        list(service.list_tables())


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 0},
        {"nbf": 2**31},
        {"aud": "https://graph.microsoft.com"},
        {"iss": "https://evil.example"},
        {"key": signing_key("first", number=1)},
    ],
    ids=["expired", "not yet valid", "audience", "issuer", "key"],
)
def test_a_bad_token(server: Secured, claims: dict[str, Any]) -> None:
    token = server.token(**claims)
    with client(server, token) as service, rejected(ClientAuthenticationError):
        list(service.list_tables())
    with (
        client(server, token, api_version=CHALLENGES) as service,
        rejected(ClientAuthenticationError),
    ):
        list(service.list_tables())


def test_the_challenge_names_the_tenant(server: Secured) -> None:
    credential = Credential(lambda tenant: server.token() if tenant == TENANT else "of another tenant")
    with TableServiceClient(
        server.endpoint, credential=credential, api_version=CHALLENGES, **server.options()
    ) as service:
        list(service.list_tables())
        list(service.list_tables())
    assert credential.asked == [((SCOPE,), None), ((SCOPE,), TENANT)]


async def test_the_challenge_names_the_tenant_asynchronously(server: Secured) -> None:
    credential = AsyncCredential(lambda tenant: server.token() if tenant == TENANT else "of another tenant")
    async with AsyncTableServiceClient(
        server.endpoint, credential=credential, api_version=CHALLENGES, **server.options()
    ) as service:
        table = await service.create_table(f"t{uuid4().hex}")
        await table.upsert_entity(row("a"))
        assert [found async for found in table.list_entities()] == [row("a")]
        await table.delete_table()
    assert credential.asked == [((SCOPE,), None), ((SCOPE,), TENANT)]


async def test_an_asynchronous_reader(server: Secured) -> None:
    credential = AsyncCredential(lambda _: server.token(roles=[READER]))
    async with AsyncTableServiceClient(server.endpoint, credential=credential, **server.options()) as service:
        assert [found async for found in service.list_tables()] == []
        with rejected(403):
            await service.create_table("another")


def test_keys_rotate_while_requests_run(server: Secured) -> None:
    """An issuer publishes a key, then signs with it, and drops an old one that signed nothing still in use."""
    keys = [server.key, *(signing_key(f"rotated-{number}", "ES256") for number in range(8))]
    signer = [keys[0]]
    failures: list[BaseException] = []
    served = [0] * 3
    turned = threading.Event()

    def work(worker: int) -> None:
        last: SigningKey | None = None
        try:
            while not turned.is_set() or last is not keys[-1]:
                last = signer[0]
                with client(server, server.token(last, jti=str(time.time_ns()))) as service:
                    list(service.list_tables())
                served[worker] += 1
        except BaseException as error:  # noqa: BLE001 - for the main thread to judge
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(served))]
    for thread in workers:
        thread.start()
    for at in range(1, len(keys)):
        server.issuer.publish(*keys[max(0, at - 2) : at + 1])
        signer[0] = keys[at]
        with client(server, server.token(keys[at])) as service:
            list(service.list_tables())
    turned.set()
    for thread in workers:
        thread.join()
    assert not failures
    assert all(served)
    with (
        client(server, server.token(keys[-4])) as service,
        rejected(ClientAuthenticationError),
    ):
        list(service.list_tables())
    server.issuer.publish(*keys)
