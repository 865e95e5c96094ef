import hashlib
from base64 import b64encode

import pytest

from lazulite.protocol.content_md5 import check_content_md5
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request


def _request(header: str | None) -> Request:
    headers = {} if header is None else {"content-md5": header}
    return Request("POST", "/", headers=headers, body=b"body")


def test_the_right_digest_and_none_pass() -> None:
    check_content_md5(_request(None))
    check_content_md5(_request(b64encode(hashlib.md5(b"body").digest()).decode()))


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("banana", "InvalidMd5"),
        ("é", "InvalidMd5"),
        ("", "InvalidMd5"),
        (b64encode(bytes(15)).decode(), "InvalidMd5"),
        (b64encode(bytes(16)).decode(), "Md5Mismatch"),
    ],
)
def test_wrong_digests(header: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check_content_md5(_request(header))
    assert caught.value.code == code
