"""The Blob service that the fuzzers talk to: the contents that it keeps are those to which rows refer."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from lazulite.blob.auth.credentials import blob_string_to_sign
from lazulite.blob.model.references import contents_of_row
from lazulite.blob.service import BlobService
from lazulite.engine.content.contract import ContentId
from lazulite.engine.contract import LISTED
from lazulite.engine.key_encoding import decode_key, space_prefix
from lazulite.protocol.message import Request, Response
from lazulite.records.spaces import COUNTERS, UNTIDY_CONTAINERS, UPLOADS

from .oracles import check_answer, require
from .world import DATE, ROOT, Exchange, World

CONTAINER = "docs"
LARGE = bytes(range(256)) * 100
"""Too large for a row."""
APPENDED = b"one,two,"
_UPDATE = {"x-ms-page-write": "update"}
_SPACES = range(LISTED | 1000, LISTED | 1100)
"""More than a request makes."""


class BlobWorld(World):
    """A service with the container `docs`, which has blobs of all types, and another container."""

    reading = frozenset({"GET", "HEAD", "OPTIONS"})
    hidden = (COUNTERS, UNTIDY_CONTAINERS, UPLOADS)
    transactional = False
    headers = {  # noqa: RUF012 - as in the base class, a table
        "host": "127.0.0.1:10000",
        "x-ms-date": DATE,
        "x-ms-version": "2021-12-02",
    }
    string_to_sign = staticmethod(blob_string_to_sign)
    make = BlobService

    def fill(self) -> None:
        """Make the containers and the blobs."""
        self.put("", query="restype=container")
        self.put("", "other", query="restype=container", headers={"x-ms-blob-public-access": "container"})
        self.put("small", body=b"0123456789", headers={"x-ms-blob-type": "BlockBlob", "x-ms-meta-a": "1"})
        self.put("large", body=LARGE, headers={"x-ms-blob-type": "BlockBlob", "x-ms-tags": "a=1&b=2"})
        self.put("log", headers={"x-ms-blob-type": "AppendBlob"})
        self.put("log", query="comp=appendblock", body=APPENDED)
        pages = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "4096"}
        self.put("pages", headers=pages)
        self.put("pages", query="comp=page", body=bytes(512), headers={"x-ms-range": "bytes=0-511", **_UPDATE})
        for block in ("AAAA", "AAAB"):
            self.put("blocks", query=f"comp=block&blockid={block}", body=block.encode())
        self.put("blocks", query="comp=blocklist", body=b"<BlockList><Latest>AAAA</Latest></BlockList>")
        self.put("blocks", query="comp=block&blockid=AAAC", body=LARGE)
        self._kept = dict(self.contents._contents)

    def put(
        self,
        name: str,
        container: str = CONTAINER,
        query: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Exchange:
        """Send a PUT that must succeed."""
        path = f"{ROOT}{container}/{name}" if name else f"{ROOT}{container}"
        done = self.ask("PUT", path, query, headers, body)
        assert done.status == 201, done.response
        return done

    def ask(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        signed: bool = True,
    ) -> Exchange:
        """Send a request with the length of its body."""
        return super().ask(
            method, path, query, {**(headers or {}), "content-length": str(len(body))}, body, signed=signed
        )

    def reset(self) -> None:
        """Forget what the last input did, contents too."""
        self.contents._contents = dict(self._kept)
        super().reset()

    async def handle(self, request: Request) -> Response:
        """Return the response, with its whole body, once no garbage is being deleted."""
        response = await super().handle(request)
        if response.content is not None:
            body = b"".join([chunk async for chunk in response.content.chunks()]) if request.method != "HEAD" else b""
            await response.content.aclose()
            response = replace(response, body=body, content=None)
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks)
        return response

    def check(self, request: Request, response: Response) -> None:
        """Hold a response against the rules, but for the bytes of blobs; compare contents and rows."""
        headers = {name.lower(): value for name, value in response.fields()}
        if headers.get("content-type", "").startswith("multipart/mixed") or "x-ms-blob-type" in headers:
            response = replace(response, body=b"", headers=[("x-ms-error-code", response.error_code)], opening="")
        check_answer(response, head=request.method == "HEAD")
        require(self.referenced() == set(self.contents._contents), "each content has a row, and each row its content")

    def visible(self, rows: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Return the rows that a request can show: the index of tags may have too much."""
        return {key: value for key, value in super().visible(rows).items() if not _is_index(key)}

    def referenced(self) -> set[ContentId]:
        """Return the contents to which rows refer."""
        found: set[ContentId] = set()
        for space in _SPACES:
            prefix = space_prefix(space)
            for key, value in self.engine.state().rows.items():
                if key.startswith(prefix):
                    row = decode_key(key)[1]
                    if not _is_index(key):
                        found.update(contents_of_row(space, row, value))
        return found


def _is_index(key: bytes) -> bool:
    return decode_key(key)[0].startswith("\0")
