"""The workloads of a container: single blobs, blocks, and pages of its list."""

from collections.abc import Iterator
from random import Random

from benchmarks.catalogue import KEYS_MAX
from benchmarks.load import run_asyncio
from benchmarks.requests import Builder
from benchmarks.workload import MARK, Workload
from lazulite.blob.requests.paging import Marker, write_marker

CONTAINER, VERSION = "bench", "2021-12-02"
BLOB_BYTES, BLOCK_BYTES = 1024, 4 << 20
BLOCKS_READ, UPLOADS, CONNECTIONS_OF_BLOCKS = 16, 16, 8
PAGE = 5000
SKIPPED, LAST = "m", "z"
"""Begin the names of blobs below one prefix, and of as many prefixes behind it as a page has."""
_PAGES_MAX, _BY_PREFIX = 16, "&delimiter=/"
_MARKED = MARK.decode()
_CONTENT = Random(4).randbytes(BLOCK_BYTES)


def blob_name(number: int) -> str:
    """Return the name of a stored blob: a prefix has two."""
    return f"{number // 2:012d}/{number % 2}"


def names(entities: int, skipped: int) -> Iterator[str]:
    """Yield the names of so many blobs, then of some below one prefix, then of a page of prefixes."""
    yield from map(blob_name, range(entities))
    yield from (f"{SKIPPED}/{number:012d}" for number in range(skipped))
    yield from (f"{LAST}{number:012d}/0" for number in range(PAGE))


class Blobs(Builder):
    """Builds the workloads of a container."""

    service, sas = "blob", ("b", "rwdlac")

    def create(self) -> bytes:
        """Return the request that creates the container."""
        return self.requests.raw("PUT", CONTAINER, "restype=container", Content_Length="0")

    def preload(self) -> Workload:
        """Put the blobs, each once."""
        requests = [self._put(f"{_MARKED}/{number}") for number in range(2)]
        return Workload("load", 1, 16, 201, requests, entities=self.entities, sharing=2)

    def put(self) -> Workload:
        """Put new blobs of 1 KB."""
        return Workload("put", 1, 64, 201, [self._put(f"new/{_MARKED}")], entities=self.entities)

    def get(self) -> Workload:
        """Get blobs of 1 KB, chosen over the whole container."""
        return self._read("get", 200, "GET")

    def get_parts(self) -> Workload:
        """Get ranges of half a KB of the same blobs."""
        return self._read("get of a range", 206, "GET", Range=f"bytes={BLOB_BYTES // 4}-{BLOB_BYTES * 3 // 4 - 1}")

    def head(self) -> Workload:
        """Get the properties of the same blobs."""
        return self._read("head", 200, "HEAD")

    def list_names(self, connections: int = 4) -> Workload:
        """List pages of 5,000 blobs, begun at several places."""
        starts = range(0, max(1, self.entities - PAGE), 2 * PAGE)
        return self._list("list", min(PAGE, self.entities), starts, connections)

    def list_prefixes(self, connections: int = 4) -> Workload:
        """List pages of 5,000 prefixes with two blobs each, begun at several places."""
        starts = range(0, max(1, self.entities - 2 * PAGE), 2 * PAGE)
        return self._list("list with a delimiter", min(PAGE, self.entities // 2), starts, connections, _BY_PREFIX)

    def list_around(self) -> Workload:
        """List a page of 5,000 prefixes in whose middle one has all the blobs that `names` may skip."""
        return self._list("list over a long prefix", PAGE, [max(0, self.entities // 2 * 2 - PAGE)], 4, _BY_PREFIX)

    def put_blocks(self, *names: str) -> Workload:
        """Put blocks of 4 MiB to the blobs of these names in turn, or to sixteen."""
        requests = [self._block(name, _CONTENT) for name in names or map("up{}".format, range(UPLOADS))]
        return Workload("put of 4 MiB blocks", BLOCK_BYTES >> 20, CONNECTIONS_OF_BLOCKS, 201, requests)

    def put_blocks_of_1_kb(self) -> Workload:
        """Put blocks of 1 KB to sixteen blobs."""
        requests = [self._block(f"small{number}", _CONTENT[:BLOB_BYTES]) for number in range(UPLOADS)]
        return Workload("put of 1 KB blocks", 1, 64, 201, requests)

    def put_small_blocks(self, name: str) -> Workload:
        """Put blocks of one byte to one blob."""
        return Workload("put of blocks of a byte", 1, 64, 201, [self._block(name, b"x")])

    def commit(self, name: str, blocks: int) -> bytes:
        """Return the request that makes the blob of so many blocks that were put, each once."""
        entries = "".join(f"<Latest>{number:0{len(MARK)}d}</Latest>" for number in range(blocks))
        return self._raw("PUT", name, "comp=blocklist", f"<BlockList>{entries}</BlockList>".encode())

    def get_ranges(self, name: str) -> Workload:
        """Get ranges of 4 MiB of a blob with sixteen of them, as the SDKs do."""
        starts = range(0, BLOCKS_READ * BLOCK_BYTES, BLOCK_BYTES)
        requests = [self._raw("GET", name, Range=f"bytes={start}-{start + BLOCK_BYTES - 1}") for start in starts]
        return Workload("get of 4 MiB ranges", BLOCK_BYTES >> 20, CONNECTIONS_OF_BLOCKS, 206, requests)

    def upload(self, name: str, mebibytes: int) -> bytes:
        """Return the head of one Put Blob of so many MiB."""
        length = str(mebibytes << 20)
        return self._raw("PUT", name, x_ms_version=VERSION, x_ms_blob_type="BlockBlob", Content_Length=length)

    def download(self, name: str) -> bytes:
        """Return the request for a whole blob."""
        return self._raw("GET", name)

    def _raw(self, method: str, name: str, query: str = "", body: bytes = b"", **headers: str) -> bytes:
        return self.requests.raw(method, f"{CONTAINER}/{name}", query, body, **headers)

    def _put(self, name: str) -> bytes:
        return self._raw("PUT", name, body=_CONTENT[:BLOB_BYTES], x_ms_blob_type="BlockBlob")

    def _read(self, name: str, status: int, method: str, **headers: str) -> Workload:
        """Return the workload of reads of blobs, chosen over the whole container."""
        numbers = Random(1).sample(range(self.entities), min(self.entities, KEYS_MAX))
        requests = [self._raw(method, blob_name(number), "", b"", **headers) for number in numbers]
        return Workload(name, 1, 32, status, requests, entities=self.entities)

    def _block(self, name: str, content: bytes) -> bytes:
        return self._raw("PUT", name, f"comp=block&blockid={_MARKED}", content)

    def _list(
        self, name: str, units: int, starts: range | list[int], connections: int, delimiter: str = ""
    ) -> Workload:
        """Return the workload of pages. One may take longer than wrk waits, so they are awaited."""
        query = f"restype=container&comp=list&maxresults={units}{delimiter}"
        chosen = starts[:: max(1, len(starts) // _PAGES_MAX)]
        markers = [f"&marker={write_marker(Marker(blob_name(start)))}" if start else "" for start in chosen]
        requests = [self.requests.raw("GET", CONTAINER, query + marker) for marker in markers]
        witness = b"<BlobPrefix>" if delimiter else b"<Blob>"
        return Workload(name, units, connections, 200, requests, witness, entities=self.entities, load=run_asyncio)
