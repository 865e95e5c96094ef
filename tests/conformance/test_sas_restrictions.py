"""Reference §14.1, §14.2, §14.3, §14.6: versions, times, addresses, protocols, and the order of rejections."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import quote

import pytest

from .answers import Answer
from .client import Client
from .sas import Fields, account_sas, moment, table_sas
from .signing import anonymous
from .tables import Table, entity

FAILED = (403, "AuthenticationFailed")
TABLE_VERSIONS = ["2012-02-12", "2013-08-15", "2014-02-14", "2015-02-21", "2015-04-05", "2015-07-08", "2015-12-11"]
TABLE_VERSIONS += ["2016-05-31", "2018-03-28", "2019-02-02", "2020-12-06", "2026-10-06"]
ACCOUNT_VERSIONS = [version for version in TABLE_VERSIONS if version >= "2015-04-05"]
ALL_ADDRESSES = "0.0.0.0-255.255.255.255"


def by_table(table: Table, fields: Fields, table_name: str | None = None) -> Answer:
    """Query with a table SAS of these fields."""
    sas = table_sas(table.client.endpoint, table_name or table.name, fields)
    return table.client.send("GET", table.path, sas, signer=anonymous)


def by_account(table: Table, fields: Fields) -> Answer:
    """Query with an account SAS of these fields."""
    return table.client.send("GET", table.path, account_sas(table.client.endpoint, fields), signer=anonymous)


@pytest.mark.parametrize("version", TABLE_VERSIONS)
def test_table_sas_versions(shared_table: Table, version: str) -> None:
    by_table(shared_table, {"sv": version}).expect(200)
    by_table(shared_table, {"sv": version, "spk": "a", "srk": "b", "epk": "c", "erk": "d"}).expect(200)


@pytest.mark.parametrize("version", ACCOUNT_VERSIONS)
def test_account_sas_versions(shared_table: Table, version: str) -> None:
    by_account(shared_table, {"sv": version, "sip": ALL_ADDRESSES, "spr": "https,http"}).expect(200)


@pytest.mark.parametrize("version", ["2012-02-12", "2013-08-15", "2014-02-14", "2015-02-21"])
def test_permission_failures_were_404_once(shared_table: Table, version: str) -> None:
    answer = by_table(shared_table, {"sv": version, "sp": "a"})
    assert answer.code == (404, "ResourceNotFound")


@pytest.mark.parametrize("version", ["", "nonsense", "2011-08-18", "20190202"])
def test_unknown_versions(shared_table: Table, version: str) -> None:
    assert by_table(shared_table, {"sv": version}).code == FAILED


@pytest.mark.unverified
@pytest.mark.parametrize("version", ["2012-02-12", "2015-02-21"])
def test_account_sas_did_not_exist_yet(shared_table: Table, version: str) -> None:
    assert by_account(shared_table, {"sv": version}).status in {400, 403}


@pytest.mark.parametrize("name", ["", "upper", "lower"])
def test_the_table_name_has_any_case(shared_table: Table, name: str) -> None:
    given = shared_table.name.upper() if name == "upper" else shared_table.name
    by_table(shared_table, {"tn": given}).expect(200)
    path = f"/{shared_table.name.upper()}()"
    sas = table_sas(shared_table.client.endpoint, given, {})
    shared_table.client.send("GET", path, sas, signer=anonymous).expect(200)


def test_sas_of_another_table_is_rejected(shared_table: Table, table: Table) -> None:
    assert by_table(shared_table, {}, table.name).code == FAILED
    assert by_table(shared_table, {"tn": shared_table.name}, table.name).code == FAILED


def test_a_missing_table_is_not_found(missing: Table) -> None:
    assert by_table(missing, {}).code == (404, "TableNotFound")


def shifted(minutes: float, form: str, zone: timezone = UTC) -> str:
    """A time so many minutes from now in a form."""
    return (datetime.now(zone) + timedelta(minutes=minutes)).strftime(form)


EAST = timezone(timedelta(hours=2))
FORMS = ["%Y-%m-%d", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%f0Z"]
DAY = 24 * 60
WINDOW = [
    *((shifted(2 * DAY, form), shifted(-2 * DAY, form), 200) for form in FORMS),
    *((shifted(-2 * DAY, form), None, 403) for form in FORMS),
    *((moment(60), shifted(2 * DAY, form), 403) for form in FORMS),
    (shifted(60, "%Y-%m-%dT%H:%M:%S+02:00", EAST), shifted(-60, "%Y-%m-%dT%H:%M:%S+02:00", EAST), 200),
    (shifted(-60, "%Y-%m-%dT%H:%M:%S+02:00", EAST), None, 403),
    (moment(60), moment(-60), 200),
    (moment(-1), None, 403),
    (moment(-60), moment(60), 403),
]


# By number: the times differ between the processes of pytest-xdist.
@pytest.mark.parametrize(("expiry", "start", "status"), WINDOW, ids=range(len(WINDOW)))
def test_sas_is_rejected_outside_its_time_frame(
    shared_table: Table, expiry: str, start: str | None, status: int
) -> None:
    for answer in (
        by_table(shared_table, {"se": expiry, "st": start}),
        by_account(shared_table, {"se": expiry, "st": start}),
    ):
        assert answer.status == status
        if status == 403:
            assert answer.rejection.code == "AuthenticationFailed"


@pytest.mark.parametrize("value", ["yesterday", "2030-13-01", "2030-01-01T25:00:00Z", "", "1893456000"])
def test_malformed_sas_times_are_rejected(shared_table: Table, value: str) -> None:
    assert by_table(shared_table, {"se": value}).code == FAILED
    assert by_account(shared_table, {"se": value}).code == FAILED
    if value:
        assert by_table(shared_table, {"st": value}).code == FAILED


@pytest.mark.parametrize("name", ["se", "sp"])
def test_missing_sas_fields_are_rejected(shared_table: Table, name: str) -> None:
    assert by_table(shared_table, {name: None}).code == FAILED
    assert by_account(shared_table, {name: None}).code == FAILED


@pytest.mark.parametrize("name", ["sv", "sig", "tn", "ss", "srt"])
def test_missing_parameters(shared_table: Table, name: str) -> None:
    endpoint = shared_table.client.endpoint
    sas = account_sas(endpoint, {}) if name in {"ss", "srt"} else table_sas(endpoint, shared_table.name, {})
    remaining = "&".join(part for part in sas.split("&") if not part.startswith(f"{name}="))
    answer = shared_table.client.send("GET", shared_table.path, remaining, signer=anonymous)
    assert answer.status in {401, 403}


CHANGES = [("sp=raud", "sp=rau"), ("sv=2019", "sv=2018"), ("&se=", "&st=2020-01-01&se="), ("se=2", "se=3")]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_changed_sas_fields_are_rejected(shared_table: Table, old: str, new: str) -> None:
    sas = table_sas(shared_table.client.endpoint, shared_table.name, {})
    assert old in sas
    answer = shared_table.client.send("GET", shared_table.path, sas.replace(old, new), signer=anonymous)
    assert answer.code == FAILED


@pytest.mark.parametrize("signature", ["AAAA", "", "***", quote("A" * 43 + "=", safe="")])
def test_a_wrong_signature(shared_table: Table, signature: str) -> None:
    endpoint = shared_table.client.endpoint
    for sas in (table_sas(endpoint, shared_table.name, {}), account_sas(endpoint, {})):
        spoiled = re.sub(r"sig=[^&]*", f"sig={signature}", sas)
        answer = shared_table.client.send("GET", shared_table.path, spoiled, signer=anonymous)
        assert answer.status in {401, 403}
        assert answer.rejection.code in {"AuthenticationFailed", "NoAuthenticationInformation"}


SPELLINGS: dict[str, Callable[[str], str]] = {
    "alike": lambda name: name,
    "upper case": str.upper,
    "encoded": lambda name: f"%{ord(name[0]):x}{name[1:]}",
}


@pytest.mark.unverified
@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_a_field_that_comes_twice(shared_table: Table, spell: Callable[[str], str]) -> None:
    """Whichever of the two is signed, and be they equal."""
    endpoint, name = shared_table.client.endpoint, shared_table.name
    for sas in (
        table_sas(endpoint, name, {"spk": "a", "spr": "https,http"}),
        account_sas(endpoint, {"sip": ALL_ADDRESSES}),
    ):
        shared_table.client.send("GET", shared_table.path, sas, signer=anonymous).expect(200)
        queries = [f"{sas}&st=&{spell('st')}="]
        for part in sas.split("&"):
            field, value = part.split("=", 1)
            again = spell(field)
            queries += [f"{again}=&{sas}", f"{sas}&{again}={value}"]
        for query in queries:
            assert shared_table.client.send("GET", shared_table.path, query, signer=anonymous).code == FAILED


@pytest.mark.unverified
def test_other_options_may_come_twice(table: Table) -> None:
    table.add(entity("p", "1"), entity("p", "2"))
    sas = table_sas(table.client.endpoint, table.name, {})
    answer = table.client.send("GET", table.path, f"$top=1&x=1&x=2&{sas}&$top=2", signer=anonymous)
    assert len(answer.expect(200).json()["value"]) == 1


def test_a_signature_is_not_repeated(shared_table: Table) -> None:
    sas = table_sas(shared_table.client.endpoint, shared_table.name, {"se": moment(-5)})
    answer = shared_table.client.send("GET", shared_table.path, sas, signer=anonymous)
    signature = re.search(r"sig=([^&]*)", sas)
    assert signature
    assert signature[1].encode() not in answer.body


ADDRESSES = [(ALL_ADDRESSES, 200), ("10.9.8.7", 403), ("10.9.8.1-10.9.8.200", 403)]
LOOPBACK = [
    ("127.0.0.1", 200),
    ("127.0.0.0-127.0.0.255", 200),
    ("127.0.0.1-127.0.0.1", 200),
    ("127.0.0.2-127.0.0.9", 403),
]


@pytest.mark.parametrize(("given", "status"), ADDRESSES + LOOPBACK)
def test_source_addresses(shared_table: Table, given: str, status: int) -> None:
    if given.startswith("127") and not shared_table.client.endpoint.host.startswith("127.0.0.1"):
        pytest.skip("the server is not on 127.0.0.1")
    for answer in (by_table(shared_table, {"sip": given}), by_account(shared_table, {"sip": given})):
        assert answer.status == status
        if status == 403:
            assert answer.rejection.code == "AuthorizationSourceIPMismatch"
            message = "This request is not authorized to perform this operation using this source IP"
            assert answer.rejection.message.startswith(message)


@pytest.mark.parametrize("given", ["nonsense", "127.0.0.1-", "1.2.3", "127.0.0.1,127.0.0.2"])
def test_malformed_addresses(shared_table: Table, given: str) -> None:
    assert by_table(shared_table, {"sip": given}).status == 403


def test_sas_protocols_are_checked(shared_table: Table) -> None:
    message = "This request is not authorized to perform this operation using this protocol."
    for ask in (by_table, by_account):
        ask(shared_table, {"spr": "https,http"}).expect(200)
        answer = ask(shared_table, {"spr": "https"})
        if shared_table.client.endpoint.scheme == "http":
            assert answer.rejection == (403, "AuthorizationProtocolMismatch", message)
        else:
            answer.expect(200)


@pytest.mark.unverified
@pytest.mark.parametrize("given", ["http", "ftp", "http,https"])
def test_other_protocols_do_not_break(shared_table: Table, given: str) -> None:
    assert by_table(shared_table, {"spr": given}).status in {200, 403}


WRONG = {
    "AuthenticationFailed": {"se": "2020-01-01"},
    "AuthorizationProtocolMismatch": {"spr": "https"},
    "AuthorizationSourceIPMismatch": {"sip": "10.9.8.7"},
    "AuthorizationServiceMismatch": {"ss": "b"},
    "AuthorizationResourceTypeMismatch": {"srt": "s"},
    "AuthorizationPermissionMismatch": {"sp": "d"},
}
"""Each rejection of an insert and the field that provokes it, in the order in which the service looks."""


@pytest.mark.parametrize("first", range(len(WRONG)))
def test_the_order_of_rejections(shared_table: Table, first: int) -> None:
    if shared_table.client.endpoint.scheme == "https":
        pytest.skip("nothing provokes a protocol mismatch")
    fields = {name: value for each in list(WRONG.values())[first:] for name, value in each.items()}
    sas = account_sas(shared_table.client.endpoint, fields)
    text = '{"PartitionKey":"p","RowKey":"never"}'
    answer = shared_table.client.send("POST", shared_table.path, sas, body=text, signer=anonymous)
    assert answer.code == (403, list(WRONG)[first])


@pytest.mark.unverified
def test_the_header_comes_before_the_sas(shared_table: Table) -> None:
    sas = table_sas(shared_table.client.endpoint, shared_table.name, {})
    answer = shared_table.client.send("GET", shared_table.path, sas)
    assert answer.status in {200, 400, 403}


def test_location_carries_no_sas(table: Table, client: Client) -> None:
    sas = table_sas(client.endpoint, table.name, {})
    text = '{"PartitionKey":"p","RowKey":"r"}'
    headers = {"Prefer": "return-no-content"}
    answer = client.send("POST", table.path, sas, headers=headers, body=text, signer=anonymous).expect(204)
    location = f"{client.endpoint.base}{table.name}(PartitionKey='p',RowKey='r')"
    assert (answer.header("Location"), answer.header("DataServiceId")) == (location, location)


def test_parameters_are_signed_as_written(table: Table) -> None:
    """`spr=https,http` may have its comma encoded or not; the decoded value is what counts."""
    table.add(entity("p", "r"))
    sas = table_sas(table.client.endpoint, table.name, {"spr": "https,http"})
    assert "https%2Chttp" in sas
    raw = sas.replace("%2C", ",").replace("%3A", ":")
    table.client.send("GET", table.path, raw, signer=anonymous).expect(200)
