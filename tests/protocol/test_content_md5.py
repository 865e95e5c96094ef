import hashlib
from base64 import b64encode
from collections.abc import AsyncIterator

import pytest

from lazulite.protocol.content_md5 import check_content_md5, checked_chunks
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from tests.request_bodies import FixedBody

CHUNKS = [b"bo", b"dy"]
RIGHT = b64encode(hashlib.md5(b"body").digest()).decode()
WRONG = [
    ("banana", "InvalidMd5"),
    ("é", "InvalidMd5"),
    ("", "InvalidMd5"),
    (b64encode(bytes(15)).decode(), "InvalidMd5"),
    (b64encode(bytes(16)).decode(), "Md5Mismatch"),
]
"""Values of the header, and the code of their rejection."""


class ChunkedBody(FixedBody):
    async def chunks(self) -> AsyncIterator[bytes]:
        self.accepted += 1
        for chunk in CHUNKS:
            yield chunk


def _request(header: str | None, body_to_come: FixedBody | None = None) -> Request:
    headers = {} if header is None else {"content-md5": header}
    return Request("POST", "/", headers=headers, body=b"body", body_to_come=body_to_come)


def test_the_right_digest_and_none_pass() -> None:
    check_content_md5({}, b"body")
    check_content_md5({"content-md5": RIGHT}, b"body")


@pytest.mark.parametrize(("header", "code"), WRONG)
def test_wrong_digests(header: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check_content_md5({"content-md5": header}, b"body")
    assert caught.value.code == code


async def _passed(request: Request, bytes_max: int = 4) -> tuple[list[bytes], str]:
    """Return the chunks that pass, and the code of the rejection."""
    passed = []
    try:
        async for chunk in checked_chunks(request, bytes_max):
            passed.append(chunk)
    except ServiceError as error:
        return passed, error.code
    return passed, ""


@pytest.mark.parametrize("header", [None, RIGHT])
async def test_chunks_of_a_right_body_pass_once(header: str | None) -> None:
    request = _request(header, ChunkedBody(b""))
    assert await _passed(request) == (CHUNKS, "")
    assert await _passed(request) == ([], "")


@pytest.mark.parametrize(("header", "code"), WRONG)
async def test_wrong_digests_of_chunks_are_rejected_as_early_as_they_are_known(header: str, code: str) -> None:
    body = ChunkedBody(b"")
    known_late = code == "Md5Mismatch"
    assert await _passed(_request(header, body)) == (CHUNKS if known_late else [], code)
    assert body.accepted == known_late


async def test_a_chunk_beyond_the_limit_is_rejected() -> None:
    assert await _passed(_request(None, ChunkedBody(b"")), bytes_max=3) == (CHUNKS[:1], "RequestBodyTooLarge")
