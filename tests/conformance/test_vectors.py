"""Reference §13.4: this suite's own signatures. Without these, a failure elsewhere could be the client's."""

import re
from urllib.parse import unquote

import pytest

from .sas import Fields, account_sas, table_sas
from .signing import Endpoint, Signer, Unsigned, shared_key, shared_key_lite

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ENDPOINT = Endpoint("http", "127.0.0.1:10002", "/devstoreaccount1", "devstoreaccount1", KEY)
DATE = "Mon, 27 Jun 2016 15:25:14 GMT"
TABLES = "/devstoreaccount1/Tables"
JSON = "application/json;odata=nometadata"
REQUESTS: list[tuple[Signer, str, str, str, str, str]] = [
    (shared_key, "GET", "/mytable()", "", "", "1DhLhPlS6kK4tXK63UkZZePMBXDxPNmjwMN1KfX+EiM="),
    (shared_key, "GET", TABLES, "", "", "6x3Y/FLgh8/ozJ8YPcIAguM4et4HbaViJozb+kRb6aI="),
    (shared_key, "POST", TABLES, "", JSON, "kYNOWqTZJxJMqehyo5QQwZMBoZWcuyEBFjrznWLlX90="),
    (shared_key_lite, "GET", TABLES, "", "", "0t5frBDAHUb3TEbAMT7v9wwgj+L4V00scNDQC6plt2w="),
    (
        shared_key,
        "GET",
        "/devstoreaccount1/mytable",
        "comp=acl",
        "",
        "1va20X1TzUg2DOJJi740thS1CJgVqys2hHethbNVFWA=",
    ),
]
EXPIRY = "2030-01-01T00:00:00Z"


@pytest.mark.parametrize(("signer", "method", "path", "query", "content_type", "expected"), REQUESTS)
def test_signature_vectors_of_requests(
    signer: Signer, method: str, path: str, query: str, content_type: str, expected: str
) -> None:
    headers = {"x-ms-date": DATE, "content-type": content_type}
    authorization = signer(ENDPOINT, Unsigned(method, path, query, headers))
    assert str(authorization).partition(":")[2] == expected


def signature(query: str) -> str:
    """The decoded `sig` of a SAS."""
    match = re.search("sig=([^&]*)", query)
    assert match
    return unquote(match[1])


def test_signature_vectors_of_table_sas() -> None:
    fields: Fields = {"sp": "raud", "se": EXPIRY, "sv": "2019-02-02"}
    assert signature(table_sas(ENDPOINT, "MyTable", fields)) == "VH1kJ2dMcGJPJnFMefVZ3HMd1fedSci/031kWIgJz0w="


def test_signature_vectors_of_account_sas() -> None:
    whole: Fields = {"sp": "rwdlacu", "se": EXPIRY, "sv": "2019-02-02", "ss": "t", "srt": "soc"}
    assert signature(account_sas(ENDPOINT, whole)) == "2/d58i4+JROW5cOSI9tFJNZYQKyAwfsgJowJg6WzqHQ="
    later: Fields = {"sp": "r", "se": EXPIRY, "sv": "2026-10-06", "ss": "b", "srt": "o"}
    assert signature(account_sas(ENDPOINT, later)) == "q5agt3x9rUhjwFh+R2u+RRyIRLhgxqhP/p90vniL+lI="
