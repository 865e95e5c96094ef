"""The second pass of a copy: the two accounts are compared. ETags and times of writes are no difference.

Tables are compared by the number of their entities and a sum of their digests, which needs no order and no memory.
Blobs are compared one by one: properties, metadata, tags, and the MD5. Where a service knows no MD5, both contents are
read.
"""

import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lazulite.account_copy.copying import Copied, is_same_state
from lazulite.account_copy.journal import CopyError
from lazulite.account_copy.sender_pairs import SenderPairs
from lazulite.resources import blobs, containers, queues, tables
from lazulite.resources.blobs import BlobAddress, ListedBlob
from lazulite.resources.policies import Policies, is_same_metadata
from lazulite.resources.sender import RequestError, Sender

_DIGEST_BYTES = 16


class TableSummary(NamedTuple):
    """What a table has."""

    entities: int
    digest: int
    """The sum of the digests of its entities."""


class Comparison:
    """Compares the accounts of a copy.

    Args:
        sides: of the copy.
        show: called often, each time with the same object.
        counts_messages: whether a queue of the target must have as many messages.
    """

    def __init__(self, sides: SenderPairs, show: Callable[[Copied], None], *, counts_messages: bool = False) -> None:
        self._sides = sides
        self._counts_messages = counts_messages
        self._show = show
        self.compared = Copied(verb="compared")
        """What was compared."""

    def differences(self) -> Iterator[str]:
        """Yield what the target has not, or has otherwise, a line each. What it has besides is no difference.

        Raises:
            CopyError: a request failed.
        """
        source = self._sides.pair().source
        try:
            for name in tables.table_names(source):
                yield from self._table(name)
            for name in queues.queue_names(source):
                yield from self._queue(name)
            for name in containers.container_names(source):
                if not name.startswith("$logs") and not name.startswith("$blobchangefeed"):
                    yield from self._container(name)
        except RequestError as error:
            raise CopyError(f"the comparison: {error}") from None

    def _table(self, name: str) -> Iterator[str]:
        self.compared.resource = f"table {name}"
        pool, pair = self._sides.pool, self._sides.pair
        theirs = pool.submit(lambda: self._sum(pair().target, name, is_shown=False))
        ours = pool.submit(lambda: self._sum(pair().source, name, is_shown=True))
        first, second = ours.result(), theirs.result()
        if not has_policies(*(tables.table_policies(sender, name) for sender in pair())):
            yield f"table {name}: other access policies"
        if first == second:
            return
        if first.entities != second.entities:
            yield f"table {name}: {first.entities:,} entities in the source, {second.entities:,} in the target"
        else:
            yield f"table {name}: {first.entities:,} entities on both sides, but not the same ones"

    def _sum(self, sender: Sender, table: str, *, is_shown: bool) -> TableSummary:
        count = digest = 0
        for entity in tables.entities(sender, table):
            count += 1
            digest += entity_digest(entity)
            if is_shown:
                self.compared.entities += 1
                self._show(self.compared)
        return TableSummary(count, digest)

    def _queue(self, name: str) -> Iterator[str]:
        source, target = self._sides.pair()
        first, second = queues.find_queue(source, name), queues.find_queue(target, name)
        if first is None:
            return
        if second is None or not is_same_metadata(first.metadata, second.metadata):
            yield f"queue {name}: it is missing, or has other metadata"
            return
        if not has_policies(queues.queue_policies(source, name), queues.queue_policies(target, name)):
            yield f"queue {name}: other access policies"
        if self._counts_messages and first.messages != second.messages:
            yield f"queue {name}: {first.messages:,} messages in the source, {second.messages:,} in the target"

    def _container(self, name: str) -> Iterator[str]:
        self.compared.resource = f"container {name}"
        source, target = self._sides.pair()
        first, second = containers.find_container(source, name), containers.find_container(target, name)
        if first is None:
            return
        if second is None or not is_same_metadata(first.metadata, second.metadata):
            yield f"container {name}: it is missing, or has other metadata"
            return
        access = [containers.container_access(sender, name) for sender in (source, target)]
        if not has_policies(access[0].policies, access[1].policies):
            yield f"container {name}: other access policies"
        marker = ""
        while True:
            page = blobs.blob_page(source, name, marker)
            for line in self._sides.pool.map(lambda listed: self._blob(name, listed), page.blobs):
                self.compared.blobs += 1
                self._show(self.compared)
                if line:
                    yield line
            marker = page.marker
            if not marker:
                return

    def _blob(self, container: str, listed: ListedBlob) -> str:
        """Return how a blob differs; "" if it does not."""
        source, target = self._sides.pair()
        address = BlobAddress(container, listed.name)
        name, state = f"blob {container}/{listed.name}", listed.state
        there = blobs.find_blob(target, address)
        if there is None:
            return f"{name}: it is missing"
        if not is_same_state(state._replace(md5=""), there._replace(md5="")):
            return f"{name}: other properties or metadata"
        if blobs.blob_tags(source, address, state) != blobs.blob_tags(target, address, there):
            return f"{name}: other tags"
        digests = (
            each.md5 or blobs.content_md5(sender, address, each.length)
            for sender, each in ((source, state), (target, there))
        )
        return "" if len(set(digests)) == 1 else f"{name}: another content"


def has_policies(first: Policies, second: Policies) -> bool:
    """Tell whether a resource without policies, or with the same ones, is in the source."""
    return not first or first == second


def entity_digest(entity: tables.Entity) -> int:
    """Return a digest of an entity: of its keys, and of the types and values of its properties in any order."""
    properties = sorted((name, edm.name, literal) for name, (edm, literal) in entity.properties.items())
    text = repr((entity.partition, entity.row, properties)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest(), "big")
