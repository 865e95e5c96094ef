"""The terms that every SAS has: time, protocol, address, version."""

import pytest

from lazulite.auth.accounts.account import Account, Signer
from lazulite.auth.sas import (
    MalformedSasError,
    Terms,
    check_version,
    is_signed,
    parse_sas_date,
    parse_terms,
    read_values,
    signature,
    write_query,
)
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError

START, EXPIRY = "2030-01-01", "2030-01-02T00:00:00Z"
FIRST, LAST = parse_sas_date(START), parse_sas_date(EXPIRY)


def terms(ip: str = "", protocol: str = "") -> Terms:
    return parse_terms("", EXPIRY, ip, protocol)


def test_the_time_frame_includes_both_ends() -> None:
    frame = parse_terms(START, EXPIRY, "", "")
    frame.check_time(FIRST)
    frame.check_time(LAST)
    for now, shown in ((FIRST - 1, "Mon, 31 Dec 2029 23:59:59 GMT"), (LAST + 1, "Wed, 02 Jan 2030 00:00:00 GMT")):
        with pytest.raises(ServiceError, match="403 AuthenticationFailed") as caught:
            frame.check_time(now)
        assert caught.value.details[0][1] == (
            "Signature not valid in the specified time frame: Start [Tue, 01 Jan 2030 00:00:00 GMT] - "
            f"Expiry [Wed, 02 Jan 2030 00:00:00 GMT] - Current [{shown}]"
        )


def test_an_expiry_without_a_start_is_compared_with_now() -> None:
    with pytest.raises(ServiceError, match="403 AuthenticationFailed") as caught:
        terms().check_time(LAST + TICKS_PER_SECOND)
    assert caught.value.details[0][1] == (
        "Signed expiry time [Wed, 02 Jan 2030 00:00:00 GMT] must be after signed start time "
        "[Wed, 02 Jan 2030 00:00:01 GMT]"
    )


def test_a_time_before_the_calendar_is_shown_as_its_first_day() -> None:
    text = "0001-01-01T00:00+10:00"
    for frame in (parse_terms(text, text, "", ""), parse_terms("", text, "", "")):
        with pytest.raises(ServiceError) as caught:
            frame.check_time(LAST)
        assert "[Mon, 01 Jan 1 00:00:00 GMT]" in caught.value.details[0][1]


def test_no_start_is_since_ever_and_no_expiry_never() -> None:
    terms().check_time(0)
    with pytest.raises(ServiceError, match="403 AuthenticationFailed"):
        parse_terms(START, "", "", "").check_time(FIRST)


@pytest.mark.parametrize(
    ("protocol", "http"), [("", True), ("https,http", True), ("http,https", True), ("https", False)]
)
def test_protocols(protocol: str, http: bool) -> None:
    terms(protocol=protocol).check_transport("https", "")
    if http:
        terms(protocol=protocol).check_transport("http", "")
    else:
        with pytest.raises(ServiceError, match=r"403 AuthorizationProtocolMismatch: .*using this protocol\.$"):
            terms(protocol=protocol).check_transport("http", "")


@pytest.mark.parametrize(
    ("ip", "client", "allowed"),
    [
        ("", "anything", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.9-10.0.1.3", "10.0.0.9", True),
        ("10.0.0.9-10.0.1.3", "10.0.0.10", True),
        ("10.0.0.9-10.0.1.3", "10.0.1.3", True),
        ("10.0.0.9-10.0.1.3", "10.0.0.8", False),
        ("10.0.0.9-10.0.1.3", "10.0.1.4", False),
        ("10.0.1.3-10.0.0.9", "10.0.0.10", False),
        ("0.0.0.0-255.255.255.255", "10.0.0.1", True),
        ("0.0.0.0-255.255.255.255", "::1", False),
        ("0.0.0.0-255.255.255.255", "", False),
        ("0.0.0.0-255.255.255.255", "somewhere", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("10.0.0.1", "::ffff:10.0.0.2", False),
    ],
)
def test_addresses(ip: str, client: str, allowed: bool) -> None:
    if allowed:
        terms(ip=ip).check_transport("http", client)
        return
    with pytest.raises(ServiceError) as caught:
        terms(ip=ip).check_transport("http", client)
    shown = client.removeprefix("::ffff:")
    assert (caught.value.code, caught.value.status) == ("AuthorizationSourceIPMismatch", 403)
    assert caught.value.message == (
        f"This request is not authorized to perform this operation using this source IP {shown}."
    )


def test_protocol_goes_before_address() -> None:
    with pytest.raises(ServiceError, match="AuthorizationProtocolMismatch"):
        terms("10.0.0.1", "https").check_transport("http", "10.0.0.2")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("start", "tomorrow"), ("expiry", "2030-02-30")],
        *[("protocol", value) for value in ("http", "HTTPS", "ftp", "https,", "https, http")],
        *[
            ("ip", value)
            for value in ("10.0.0", "10.0.0.1-", "-10.0.0.1", "10.0.0.1-10.0.0.2-10.0.0.3", "::1", "10.0.0.0/8")
        ],
    ],
)
def test_malformed_terms(field: str, value: str) -> None:
    with pytest.raises(MalformedSasError):
        parse_terms(**({"start": "", "expiry": EXPIRY, "ip": "", "protocol": ""} | {field: value}))


def test_versions() -> None:
    for version in ("2012-02-12", "2019-02-02", "2099-12-31"):
        check_version(version)
    for version in ("", "2009-09-19", "2012-2-12", "2019-02-02x", "latest", "٢٠١٩-02-02"):
        with pytest.raises(MalformedSasError, match="sv must be"):
            check_version(version)
    with pytest.raises(MalformedSasError, match="2015-04-05"):
        check_version("2015-02-21", "2015-04-05")


def test_a_line_feed_is_rejected_wherever_it_is() -> None:
    assert read_values({"a": "1", "b": "2\n3"}, {"a": "x"}) == {"x": "1"}
    with pytest.raises(MalformedSasError, match="line feed"):
        read_values({"a": "1\n"}, {"a": "x"})


def test_either_key_signs_and_wrong_ones_cost_the_same() -> None:
    account = Account("a", (b"first", b"second"))
    assert is_signed(account, "text", signature(Signer(b"first"), "text"))
    assert is_signed(account, "text", signature(Signer(b"second"), "text"))
    for wrong in (
        signature(Signer(b"third"), "text"),
        signature(Signer(b"first"), "other"),
        "",
        "é",
        "\ud800".encode("utf-8", "replace").decode(),
    ):
        assert not is_signed(account, "text", wrong)


def test_a_query_leaves_out_what_is_not_there() -> None:
    assert write_query({"sp": "r", "st": "", "sig": "a+/="}) == "sp=r&sig=a%2B%2F%3D"
