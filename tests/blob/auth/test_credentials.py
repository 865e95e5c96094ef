"""The string-to-sign of blobs: the SDK signs the same one."""

from base64 import b64encode

import pytest
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.rest import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy
from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import Account
from lazulite.auth.shared_key import SharedKey, parse_http_date
from lazulite.blob.auth.credentials import blob_string_to_sign
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request

ACCOUNT = Account("acct", (b"first", b"second"))
DATE = "Tue, 01 Jan 2030 00:00:00 GMT"
NOW = parse_http_date(DATE)
NAME = st.text("abcxyz019_", min_size=1, max_size=8)


def is_signed(request: Request) -> bool:
    header, address = request.headers["authorization"], Addressing().locate(request)
    try:
        SharedKey(ACCOUNT, header, address, None, blob_string_to_sign).check(request, NOW)
    except ServiceError:
        return False
    return True


def sent_by_the_sdk(metadata: dict[str, str], query: str = "") -> Request:
    url = f"http://localhost/acct/c/d/%C3%A9%20b{query}"
    headers = {"x-ms-version": "2026-10-06", "x-ms-date": DATE, "x-ms-blob-type": "BlockBlob", "Content-Length": "0"}
    request = HttpRequest("PUT", url, headers=headers | {f"x-ms-meta-{name}": text for name, text in metadata.items()})
    policy = SharedKeyCredentialPolicy("acct", b64encode(b"second").decode())  # type: ignore[no-untyped-call]  # the SDK
    policy.on_request(  # type: ignore[no-untyped-call]  # the SDK
        PipelineRequest(request, PipelineContext(None))
    )
    found = {name.lower(): value for name, value in request.headers.items()}
    return Request("PUT", "/acct/c/d/%C3%A9%20b", query.removeprefix("?"), found)


@given(st.dictionaries(NAME, st.text("ab ", min_size=1).map(str.strip), max_size=6))
def test_the_sdk_signs_the_same(metadata: dict[str, str]) -> None:
    request = sent_by_the_sdk(
        {name.lower(): text or "x" for name, text in metadata.items()}, "?comp=metadata&timeout=5"
    )
    assert is_signed(request)
    request.path += "1"
    assert not is_signed(request)


@pytest.mark.parametrize(("version", "full"), [("2009-09-18", False), ("2009-09-19", True), ("", True)])
def test_old_versions_sign_what_shared_key_lite_does(version: str, full: bool) -> None:
    headers = {"x-ms-date": DATE, "range": "bytes=0-1"} | ({"x-ms-version": version} if version else {})
    request = Request("GET", "/acct/c/b", "comp=metadata&timeout=5", headers)
    lite = blob_string_to_sign("SharedKeyLite", request, "acct", request.path, "metadata")
    found = blob_string_to_sign("SharedKey", request, "acct", request.path, "metadata")
    assert (found == lite) is not full
    assert ("bytes=0-1" in found) is full
