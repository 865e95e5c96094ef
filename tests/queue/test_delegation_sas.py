"""User delegation SAS of queues: each field is signed, and none can make the string-to-sign ambiguous."""

import hmac
from base64 import b64encode
from urllib.parse import quote

import pytest

from lazulite.auth.delegation.key import DelegationKey, Secret
from lazulite.auth.sas import MalformedSasError
from lazulite.queue.credentials import MARKER, parse_queue_delegation_sas

SECRET = Secret(5, b"secret")
KEY = DelegationKey(oid="o", tid="t", start="2030-01-01", expiry="2030-01-08", service="q", version="2026-02-06")
KEY_FIELDS = {"skoid": "o", "sktid": "t", "skt": "2030-01-01", "ske": "2030-01-08", "sks": "q", "skv": "2026-02-06"}
FIELDS = {"sv": "2026-10-06", "sp": "raup", "se": "2030-01-02", "st": "2030-01-01", "sip": "10.0.0.1", "spr": "https"}
LINES = (
    "raup\n2030-01-01\n2030-01-02\n/queue/acct/jobs\no\nt\n2030-01-01\n2030-01-08\nq\n2026-02-06\n\n\n10.0.0.1\nhttps\n"
)


def token(**changes: str) -> dict[str, str]:
    digest = hmac.digest(KEY.value(SECRET, "acct"), f"{LINES}2026-10-06".encode(), "sha256")
    return {**FIELDS, **KEY_FIELDS, "sig": b64encode(digest).decode(), MARKER: "jobs"} | changes


def is_good(fields: dict[str, str]) -> bool:
    sas = parse_queue_delegation_sas(fields, {})
    sas.terms()
    sas.key_terms()
    return sas.is_signed_by([Secret(1, b"other"), SECRET], "acct")


def test_a_good_token() -> None:
    assert is_good(token())
    assert quote(token()["sig"]) not in repr(parse_queue_delegation_sas(token(), {}))
    assert not parse_queue_delegation_sas(token(), {}).is_signed_by([], "acct")


@pytest.mark.parametrize("name", [*FIELDS, *KEY_FIELDS, "sig", "skdutid", "sduoid", MARKER])
def test_every_field_is_signed(name: str) -> None:
    other = {"sv": "2026-10-07", "skv": "2026-02-07", "spr": "https,http", "sip": "10.0.0.2"}
    other |= dict.fromkeys(("st", "se", "skt", "ske"), "2030-01-03")
    assert not is_good(token(**{name: other.get(name, "x")}))


@pytest.mark.parametrize(
    "changes",
    [
        {"sv": "2025-07-04"},
        {"skv": "2025-07-04"},
        {"sp": ""},
        {"se": ""},
        {"skt": "x"},
        *({name: ""} for name in KEY_FIELDS),
        {"si": "policy"},
        {"sp": "r\n2030-01-01"},
        {"skoid": "o\nt"},
        {MARKER: ""},
        {MARKER: "jobs\no"},
    ],
)
def test_malformed_tokens(changes: dict[str, str]) -> None:
    with pytest.raises(MalformedSasError):
        is_good(token(**changes))
