from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.clock import UNIX_EPOCH_TICKS
from lazulite.protocol.errors import ServiceError
from lazulite.records.catalog import StoredAccessPolicy
from lazulite.service.signed_identifiers import read_signed_identifiers, write_signed_identifiers

HEAD = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>'


def wrap(*identifiers: str) -> bytes:
    return f"<SignedIdentifiers>{''.join(identifiers)}</SignedIdentifiers>".encode()


def identifier(id_: str, policy: str = "") -> str:
    return f"<SignedIdentifier><Id>{id_}</Id><AccessPolicy>{policy}</AccessPolicy></SignedIdentifier>"


def rejected(body: bytes) -> str:
    with pytest.raises(ServiceError) as caught:
        read_signed_identifiers(body)
    assert caught.value.status == 400
    return caught.value.code


@pytest.mark.parametrize("body", [b"", b" \r\n", b"<SignedIdentifiers />", wrap(), HEAD + wrap()])
def test_nothing_clears(body: bytes) -> None:
    assert read_signed_identifiers(body) == []


OFFSETS = ["2021-06-08T02:05:09+02:00", "2021-06-08T02:05:09-00:00", "0001-01-01T00:00+01:00"]


@pytest.mark.parametrize(
    ("time", "normalised"),
    [
        ("2021-06-08", "2021-06-08T00:00:00.0000000Z"),
        ("2021-06-08T02:05Z", "2021-06-08T02:05:00.0000000Z"),
        ("2021-06-08T02:05:09Z", "2021-06-08T02:05:09.0000000Z"),
        ("2021-06-08T02:05:09.123456Z", "2021-06-08T02:05:09.1234560Z"),
        ("2021-06-08T02:05:09.1234567Z", "2021-06-08T02:05:09.1234567Z"),
        (" 2021-06-08 ", "2021-06-08T00:00:00.0000000Z"),
        ("0001-01-01T00:00:00.0000000Z", "0001-01-01T00:00:00.0000000Z"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
    ],
)
def test_times_are_normalised(time: str, normalised: str) -> None:
    policies = read_signed_identifiers(wrap(identifier("i", f"<Start>{time}</Start>")))
    assert write_signed_identifiers(policies) == HEAD + wrap(identifier("i", f"<Start>{normalised}</Start>"))


@pytest.mark.parametrize("time", ["soon", "2021-06-08T25:00Z", "2021-06-08T02:05:09.12345678Z", *OFFSETS])
def test_other_times_are_rejected(time: str) -> None:
    assert rejected(wrap(identifier("i", f"<Expiry>{time}</Expiry>"))) == "InvalidXmlDocument"


@pytest.mark.parametrize(
    "body",
    [
        "<SignedIdentifier><Id>i</Id></SignedIdentifier>",
        "<SignedIdentifier><AccessPolicy/><Id>i</Id></SignedIdentifier>",
        identifier("i", "<Start/><Expiry/><Permission/>"),
    ],
)
def test_a_policy_may_be_empty(body: str) -> None:
    assert read_signed_identifiers(wrap(body)) == [StoredAccessPolicy("i")]


def test_what_is_omitted_stays_omitted() -> None:
    policies = [StoredAccessPolicy("a", permission="ru"), StoredAccessPolicy("b")]
    assert write_signed_identifiers(policies) == HEAD + (
        b"<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Permission>ru</Permission></AccessPolicy>"
        b"</SignedIdentifier><SignedIdentifier><Id>b</Id></SignedIdentifier></SignedIdentifiers>"
    )
    assert write_signed_identifiers([]) == HEAD + b"<SignedIdentifiers />"


def test_five_policies_are_allowed_and_six_are_not() -> None:
    assert len(read_signed_identifiers(wrap(*map(identifier, "abcde")))) == 5
    with pytest.raises(ServiceError, match="InvalidXmlDocument") as raised:
        read_signed_identifiers(wrap(*map(identifier, "abcdef")))
    assert raised.value.details == ()


def test_an_id_has_at_most_64_characters() -> None:
    assert read_signed_identifiers(wrap(identifier("x" * 64)))[0].id == "x" * 64
    assert rejected(wrap(identifier("x" * 65))) == "InvalidXmlDocument"
    assert rejected(wrap(identifier("\U0001f600" * 33))) == "InvalidXmlDocument"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<Other/>", "InvalidXmlDocument"),
        (b"<SignedIdentifiers", "InvalidXmlDocument"),
        (wrap("text"), "InvalidXmlDocument"),
        (wrap("<Other/>"), "InvalidXmlDocument"),
        (wrap("<SignedIdentifier/>"), "InvalidXmlDocument"),
        (wrap(identifier(" ")), "InvalidXmlDocument"),
        (wrap(identifier("a"), identifier("a")), "InvalidXmlDocument"),
        (wrap("<SignedIdentifier><Id>a</Id><Id>b</Id></SignedIdentifier>"), "InvalidXmlDocument"),
        (wrap(identifier("a", "<Other/>")), "InvalidXmlDocument"),
        (wrap(identifier("a", "<Permission>ar</Permission>")), "InvalidXmlDocument"),
        (wrap(identifier("a", "<Permission>rr</Permission>")), "InvalidXmlDocument"),
        (wrap(identifier("a", "<Permission>rw</Permission>")), "InvalidXmlDocument"),
    ],
)
def test_rejections(body: bytes, code: str) -> None:
    assert rejected(body) == code


def test_each_service_has_its_letters() -> None:
    body = wrap(identifier("a", "<Permission>raup</Permission>"))
    assert read_signed_identifiers(body, "raup")[0].permission == "raup"
    assert rejected(body) == "InvalidXmlDocument"


TICKS = st.integers(UNIX_EPOCH_TICKS - 10**17, UNIX_EPOCH_TICKS + 10**18)
POLICIES = st.lists(
    st.builds(
        StoredAccessPolicy,
        st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="\ufffe\uffff"), min_size=1)
        .map(lambda text: text[:32].strip())
        .filter(bool),
        st.none() | TICKS,
        st.none() | TICKS,
        st.sampled_from([None, "r", "a", "raud", "ud"]),
    ),
    max_size=5,
    unique_by=lambda policy: policy.id,
)


@given(POLICIES)
def test_documents_survive(policies: list[StoredAccessPolicy]) -> None:
    assert read_signed_identifiers(write_signed_identifiers(policies)) == policies


@given(st.binary(max_size=100))
def test_bytes_are_read_or_rejected(body: bytes) -> None:
    with suppress(ServiceError):
        read_signed_identifiers(body)
