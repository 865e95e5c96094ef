"""Reference §1: the account in the host's name, as in the cloud. Here, an emulator takes `*.table.localhost`.

Only the Host header says so; the connection goes where the endpoint is.
"""

from collections.abc import Iterator

import pytest

from .batches import body, changeset, insert, operation, query_body, query_part, submit, url
from .client import FULL, Client
from .sas import account_sas, table_sas
from .signing import Endpoint, Signer, anonymous, shared_key, shared_key_lite
from .tables import Table, entity, new_table


def _hosted(endpoint: Endpoint, marker: str = "") -> Client:
    client = Client(endpoint)
    port = endpoint.host.rpartition(":")[2]
    client.endpoint = endpoint._replace(host=f"{endpoint.account}{marker}.table.localhost:{port}", prefix="")
    return client


@pytest.fixture(scope="module")
def hosted(endpoint: Endpoint) -> Iterator[Client]:
    """The endpoint, spoken to in host style."""
    if not endpoint.is_path_style or endpoint.host.partition(":")[0] not in {"127.0.0.1", "localhost"}:
        pytest.skip("the endpoint is not on this machine; if it is in host style, every test is about that")
    client = _hosted(endpoint)
    yield client
    client.close()


@pytest.fixture(scope="module")
def hosted_secondary(endpoint: Endpoint, hosted: Client) -> Iterator[Client]:
    """Its secondary."""
    client = _hosted(endpoint, "-secondary")
    yield client
    client.close()


@pytest.fixture
def hosted_table(hosted: Client) -> Iterator[Table]:
    """A table made in host style."""
    yield from new_table(hosted)


@pytest.mark.parametrize("signer", [shared_key, shared_key_lite])
def test_requests_are_signed_without_the_account_in_the_path(hosted: Client, table: Table, signer: Signer) -> None:
    table.add(entity("p'q", "r 1%"))
    assert hosted.send("GET", table.at("p'q", "r 1%"), signer=signer).expect(200).json()["RowKey"] == "r 1%"
    assert hosted.send("GET", table.path, "comp=acl", signer=shared_key).status == 200


def test_links_have_the_host_and_no_account(hosted_table: Table) -> None:
    endpoint = hosted_table.client.endpoint
    relative = f"{hosted_table.name}(PartitionKey='p',RowKey='r')"
    answer = hosted_table.insert(entity("p", "r"), Accept=FULL).expect(201)
    assert endpoint.base == f"http://{endpoint.host}/"
    assert answer.header("Location") == endpoint.base + relative
    assert answer.json()["odata.id"] == endpoint.base + relative
    assert answer.json()["odata.editLink"] == relative
    assert answer.json()["odata.metadata"] == f"{endpoint.base}$metadata#{hosted_table.name}/@Element"
    page = hosted_table.client.send("GET", "/Tables", "$top=1").expect(200)
    assert page.json()["odata.metadata"] == f"{endpoint.base}$metadata#Tables"


@pytest.mark.parametrize("suffix", ["table.localhost", "TABLE.LocalHost", "table.localhost."])
def test_hosts_are_spelled_in_several_ways(hosted: Client, suffix: str) -> None:
    host = f"{hosted.endpoint.account}.{suffix}"
    answer = hosted.send("GET", "/Tables", "$top=1", headers={"Host": host}).expect(200)
    assert answer.json()["odata.metadata"] == f"http://{host}/$metadata#Tables"


def test_batches_have_inner_urls_in_host_style(hosted_table: Table) -> None:
    changes = [
        insert(hosted_table, entity("p", "1"), Content_ID="1"),
        operation("PUT", hosted_table.at("p", "2"), {}),
        operation("POST", url(hosted_table), entity("p", "3"), Content_ID="3"),
    ]
    parts = changeset(submit(hosted_table.client, body(changes)).expect(202))
    assert [part.status for part in parts] == [204, 204, 201]
    base = hosted_table.client.endpoint.base
    location = f"{base}{hosted_table.name}(PartitionKey='p',RowKey='3')"
    assert dict(parts[2].headers)["Location"] == location
    get = operation("GET", url(hosted_table, hosted_table.at("p", "1")))
    assert query_part(submit(hosted_table.client, query_body([get])).expect(202)).status == 200


def test_the_secondary_reads_and_does_not_write(table: Table, hosted_secondary: Client) -> None:
    table.add(entity("p", "r", A=1))
    assert hosted_secondary.send("GET", table.at("p", "r")).expect(200).json()["A"] == 1
    base = hosted_secondary.endpoint.base
    assert hosted_secondary.send("GET", table.path).json()["odata.metadata"].startswith(base)
    answer = hosted_secondary.send("POST", table.path, body='{"PartitionKey":"p","RowKey":"n"}')
    assert answer.code == (403, "InsufficientAccountPermissions")
    hosted_secondary.send("GET", "/", "restype=service&comp=stats").expect(200)


def test_signatures_of_tokens_know_no_style(table: Table, hosted: Client) -> None:
    table.add(entity("p", "r"))
    for sas in (account_sas(hosted.endpoint, {}), table_sas(hosted.endpoint, table.name, {})):
        hosted.send("GET", table.at("p", "r"), sas, signer=anonymous).expect(200)


def test_an_absolute_target_says_the_host(table: Table, hosted: Client, endpoint: Endpoint) -> None:
    """RFC 9112 section 3.2.2: the Host header gives way. What is signed is the path alone."""
    sas = account_sas(endpoint, {})
    target = f"{hosted.endpoint.base}{table.name}"
    answer = hosted.send("GET", target, sas, headers={"Host": endpoint.host}, signer=anonymous, absolute=True)
    assert answer.expect(200).json()["odata.metadata"] == f"{hosted.endpoint.base}$metadata#{table.name}"


@pytest.mark.parametrize("account", ["nosuchaccount1", "nosuchaccount1-secondary", "a.b", "%41"])
def test_an_unknown_account_is_not_served(hosted: Client, account: str) -> None:
    answer = hosted.send("GET", "/Tables", headers={"Host": f"{account}.table.localhost"})
    assert answer.code == (404, "ResourceNotFound")


def test_the_path_is_the_accounts_own(hosted: Client, table: Table) -> None:
    """A first segment that is the account's name is nothing special: it is a table's name."""
    answer = hosted.send("GET", f"/{hosted.endpoint.account}{table.path}")
    assert answer.status in {400, 404}
