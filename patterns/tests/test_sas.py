"""A signature is for the keys of a range, and for no others."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns.keys import Key, integer, text
from lazulite_patterns.keys.characters import KeyValueError, utf16_order
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.sas import last_key, user_sas


class Review(Key):
    employee: str = text()
    title: str = text()


class Year(Key):
    name: str = text()
    year: int = integer(4)


LATER = datetime.now(UTC) + timedelta(days=30)
TEXTS = st.text(st.sampled_from(" !./#0az\ufffc\u00e9\ud7ff\ue000\U00010000\U0010ffff"), max_size=4)


@given(TEXTS, TEXTS, TEXTS)
def test_the_end_is_after_the_keys_of_a_range_and_before_all_others(one: str, other: str, title: str) -> None:
    keys = Review.prefix(employee=one)
    end = last_key(keys)
    assert end is not None
    key = Review(other, title).encode()
    assert (utf16_order(keys.lower) <= utf16_order(key) <= utf16_order(end)) is (key in keys)


@given(TEXTS, TEXTS)
def test_the_end_of_any_range_is_exact(upper: str, title: str) -> None:
    try:
        bound, key = Review("", upper).encode(), Review("", title).encode()
    except KeyValueError:
        return
    for keys in (KeyRange("", bound), KeyRange.of("", bound), KeyRange.starting_with(bound)):
        end = last_key(keys)
        assert end is not None
        assert (utf16_order(keys.lower) <= utf16_order(key) <= utf16_order(end)) is (key in keys)


def test_a_range_without_an_end_or_without_keys() -> None:
    assert last_key(KeyRange("a")) is None
    for upper in ("", " "):
        with pytest.raises(ValueError, match="no key"):
            last_key(KeyRange("", upper))


def reached(client: TableClient, sas: str) -> set[tuple[str, str]]:
    """Return the keys that a signature lets its user read, of all keys in the table."""
    found = set()
    with TableClient(client.url, client.table_name, credential=AzureSasCredential(sas), retry_total=0) as user:
        for each in client.list_entities():
            try:
                user.get_entity(each["PartitionKey"], each["RowKey"])
            except HttpResponseError as error:
                assert error.status_code in {403, 404}
            else:
                found.add((each["PartitionKey"], each["RowKey"]))
    return found


def test_a_user_reaches_the_range_and_nothing_else(table_client: TableClient) -> None:
    partitions = [".", "/", "..", "a", "a b", "b"]
    titles = ["", "x", "/", ".", "\ufffc"]
    everything = set()
    for one in partitions:
        for title in titles:
            key = Review(one, title).encode()
            for place in ((key, "row"), ("fixed", key)):
                table_client.create_entity({"PartitionKey": place[0], "RowKey": place[1]})
                everything.add(place)
    for one in partitions:
        keys = Review.prefix(employee=one)
        wanted = {place for place in everything if place[0] in keys}
        assert len(wanted) == len(titles)
        assert reached(table_client, user_sas(table_client, keys, expiry=LATER)) == wanted
        wanted = {place for place in everything if place[0] == "fixed" and place[1] in keys}
        assert reached(table_client, user_sas(table_client, "fixed", keys, expiry=LATER)) == wanted
    wanted = {place for place in everything if place[0] == "fixed"}
    assert reached(table_client, user_sas(table_client, "fixed", expiry=LATER)) == wanted


def test_a_signature_has_its_permissions_and_times(table_client: TableClient) -> None:
    table_client.create_entity({"PartitionKey": "p", "RowKey": "r"})
    earlier = datetime.now(UTC) - timedelta(hours=1)
    assert reached(table_client, user_sas(table_client, "p", expiry=LATER, start=earlier)) == {("p", "r")}
    assert reached(table_client, user_sas(table_client, "p", expiry=LATER, permission="a")) == set()
    assert reached(table_client, user_sas(table_client, "p", expiry=earlier)) == set()


def test_what_cannot_be_signed_is_rejected(table_client: TableClient) -> None:
    keys = Year.prefix(name="a")
    with pytest.raises(ValueError, match="one partition"):
        user_sas(table_client, keys, keys, expiry=LATER)
    with pytest.raises(ValueError, match="zone"):
        user_sas(table_client, "p", expiry=datetime(2030, 1, 1))
    with pytest.raises(ValueError, match="key of the account"):
        user_sas(SimpleNamespace(credential=None, table_name="t", scheme="https"), "p", expiry=LATER)
    secure = SimpleNamespace(credential=AzureNamedKeyCredential("a", "a2V5"), table_name="t", scheme="https")
    assert "spr=https" in user_sas(secure, "p", expiry=LATER)
