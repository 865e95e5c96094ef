"""Reference §14.4: which permission each operation needs, by table SAS and by account SAS."""

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple
from uuid import uuid4

import pytest

from .answers import Answer, Rejection
from .client import Client
from .sas import account_sas, table_sas
from .service_properties import QUERY, document
from .signing import anonymous
from .tables import Table, entity

PERMISSION = Rejection(
    403,
    "AuthorizationPermissionMismatch",
    "This request is not authorized to perform this operation using this permission.",
)
RESOURCE_TYPE = Rejection(
    403,
    "AuthorizationResourceTypeMismatch",
    "This request is not authorized to perform this operation using this resource type.",
)
SERVICE = Rejection(
    403, "AuthorizationServiceMismatch", "This request is not authorized to perform this operation using this service."
)
SUBSETS = ["".join(each) for size in range(1, 5) for each in combinations("raud", size)]


class Kind(NamedTuple):
    """An operation on entities and the permissions that it needs. (p, r) exists."""

    method: str
    place: str
    needs: str
    condition: str | None = None


KINDS = {
    "query": Kind("GET", "set", "r"),
    "point query": Kind("GET", "entity", "r"),
    "insert": Kind("POST", "set", "a"),
    "insert or replace": Kind("PUT", "entity", "au"),
    "insert or merge": Kind("MERGE", "entity", "au"),
    "insert or patch": Kind("PATCH", "entity", "au"),
    "update": Kind("PUT", "entity", "u", "*"),
    "merge": Kind("MERGE", "entity", "u", "*"),
    "delete": Kind("DELETE", "entity", "d", "*"),
}
SUCCESSES = {"GET": 200, "POST": 201, "PUT": 204, "MERGE": 204, "PATCH": 204, "DELETE": 204}


def perform(table: Table, kind: Kind, sas: str) -> Answer:
    """Send an operation with a SAS."""
    table.write("PUT", table.at("p", "r"), {}).expect(204)
    path = table.path if kind.place == "set" else table.at("p", "r")
    body = None if kind.method in {"GET", "DELETE"} else "{}"
    if kind.method == "POST":
        body = f'{{"PartitionKey":"p","RowKey":"{uuid4()}"}}'
    return table.client.send(kind.method, path, sas, headers={"If-Match": kind.condition}, body=body, signer=anonymous)


@pytest.mark.parametrize("given", SUBSETS)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_table_sas_permissions_by_operation(shared_table: Table, kind: Kind, given: str) -> None:
    sas = table_sas(shared_table.client.endpoint, shared_table.name, {"sp": given})
    answer = perform(shared_table, kind, sas)
    if set(kind.needs) <= set(given):
        answer.expect(SUCCESSES[kind.method])
    else:
        assert answer.rejection == PERMISSION
        assert "json" in answer.required("Content-Type")
        assert answer.header("x-ms-version") is not None


@pytest.mark.parametrize("given", [*SUBSETS, "rwdlacup"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_account_sas_permissions_by_operation(shared_table: Table, kind: Kind, given: str) -> None:
    sas = account_sas(shared_table.client.endpoint, {"sp": given, "srt": "o"})
    answer = perform(shared_table, kind, sas)
    if set(kind.needs) <= set(given):
        answer.expect(SUCCESSES[kind.method])
    else:
        assert answer.rejection == PERMISSION


@pytest.mark.parametrize("name", [name for name in KINDS if name != "query"])
@pytest.mark.parametrize("types", ["s", "c", "sc"])
def test_entities_need_objects(shared_table: Table, name: str, types: str) -> None:
    """A query of entities may count as an operation on the container; that is not recorded."""
    sas = account_sas(shared_table.client.endpoint, {"srt": types})
    assert perform(shared_table, KINDS[name], sas).rejection == RESOURCE_TYPE


class Level(NamedTuple):
    """An operation on tables or the service: address, body, resource type, letters of which any one will do, status."""

    method: str
    path: str
    body: str | None
    type: str
    letters: str
    success: int


LEVELS = {
    "query tables": Level("GET", "/Tables?$top=1", None, "c", "l", 200),
    "create table": Level("POST", "/Tables", '{{"TableName":"{new}"}}', "c", "cw", 201),
    "delete table": Level("DELETE", "/Tables('{old}')", None, "c", "d", 204),
    "get properties": Level("GET", f"/?{QUERY}", None, "s", "r", 200),
    "set properties": Level("PUT", f"/?{QUERY}", document("<Cors />"), "s", "w", 202),
}


@pytest.fixture
def act(client: Client, name: str, disposable: Callable[[str], str]) -> Callable[[Level, str], Answer]:
    """Sends an operation with a SAS; the table `{old}` exists, `{new}` does not."""
    names = {"old": disposable(name), "new": disposable(f"{name}n")}
    client.send("POST", "/Tables", body=f'{{"TableName":"{name}"}}').expect(201)

    def act(level: Level, sas: str) -> Answer:
        path, _, query = level.path.format(**names).partition("?")
        body = level.body.format(**names) if level.body else None
        return client.send(level.method, path, f"{query}&{sas}" if query else sas, body=body, signer=anonymous)

    return act


Act = Callable[[Level, str], Answer]


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_account_sas_on_tables_and_service(act: Act, client: Client, level: Level) -> None:
    for letter in level.letters[:1]:
        act(level, account_sas(client.endpoint, {"srt": level.type, "sp": letter})).expect(level.success)


def test_write_creates_tables_too(act: Act, client: Client) -> None:
    act(LEVELS["create table"], account_sas(client.endpoint, {"srt": "c", "sp": "w"})).expect(201)


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_account_sas_with_every_other_permission(act: Act, client: Client, level: Level) -> None:
    others = "".join(letter for letter in "rwdlacu" if letter not in level.letters)
    if level.path.startswith("/Tables?"):
        others = others.replace("r", "")  # whether `r` lists tables is not recorded
    assert act(level, account_sas(client.endpoint, {"srt": level.type, "sp": others})).rejection == PERMISSION


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_account_sas_with_every_other_type(act: Act, client: Client, level: Level) -> None:
    others = "".join(letter for letter in "sco" if letter != level.type)
    answer = act(level, account_sas(client.endpoint, {"srt": others}))
    assert answer.rejection == RESOURCE_TYPE


@pytest.mark.parametrize("services", ["b", "q", "f", "bqf"])
def test_account_sas_for_other_services(shared_table: Table, act: Act, services: str) -> None:
    sas = account_sas(shared_table.client.endpoint, {"ss": services})
    for kind in KINDS.values():
        assert perform(shared_table, kind, sas).rejection == SERVICE
    for level in LEVELS.values():
        assert act(level, sas).rejection == SERVICE


@pytest.mark.parametrize("services", ["t", "bt", "bqtf", "tfqb"])
@pytest.mark.parametrize("types", ["o", "sco", "ocs"])
def test_letters_have_any_order(shared_table: Table, services: str, types: str) -> None:
    sas = account_sas(shared_table.client.endpoint, {"ss": services, "srt": types, "sp": "ur"})
    perform(shared_table, KINDS["query"], sas).expect(200)


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_table_sas_reaches_entities_only(act: Act, client: Client, name: str, level: Level) -> None:
    assert act(level, table_sas(client.endpoint, name, {})).status == 403


def test_account_sas_permissions_of_stats(secondary: Client) -> None:
    sas = account_sas(secondary.endpoint, {"srt": "s", "sp": "r"})
    secondary.send("GET", "/", f"restype=service&comp=stats&{sas}", signer=anonymous).expect(200)


def test_the_secondary_reads_by_sas(shared_table: Table, secondary: Client) -> None:
    shared_table.write("PUT", shared_table.at("p", "r"), {}).expect(204)
    for sas in (table_sas(secondary.endpoint, shared_table.name, {}), account_sas(secondary.endpoint, {})):
        secondary.send("GET", shared_table.at("p", "r"), sas, signer=anonymous).expect(200)


def test_rejected_writes_change_nothing(table: Table) -> None:
    table.add(entity("p", "r", A=1))
    before = table.query().body
    sas = table_sas(table.client.endpoint, table.name, {"sp": "r"})
    for kind in KINDS.values():
        if kind.method == "GET":
            continue
        path = table.path if kind.place == "set" else table.at("p", "r")
        body = None if kind.method == "DELETE" else '{"PartitionKey":"p","RowKey":"n"}'
        answer = table.client.send(
            kind.method, path, sas, headers={"If-Match": kind.condition}, body=body, signer=anonymous
        )
        assert answer.rejection == PERMISSION
    assert table.query().body == before
