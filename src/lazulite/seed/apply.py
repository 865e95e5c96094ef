"""A seed applied to a running account: what is missing is created, what differs is replaced, nothing is deleted.

Invariants: an application that is repeated changes nothing. One that failed, or was killed, is completed by the next.
Of a table, rows are compared by values and types; of a blob, the content by its MD5, and all that the seed says.
"""

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import IO

from lazulite.resources import blobs, containers, queues, tables
from lazulite.resources.policies import POLICIES_MAX, Policies, Policy, is_same_metadata
from lazulite.resources.sender import RequestError, Sender
from lazulite.resources.settings import Parts, is_same_part, service_parts, set_service_parts
from lazulite.seed.document import AccountSeed, BlobSeed, ContainerSeed, QueueSeed, TableSeed
from lazulite.seed.positions import Path
from lazulite.seed.value import SeedError


@dataclass
class Changes:
    """What an application has done, by nouns."""

    created: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    """What was left as it is although the seed says something else, a line each."""

    @property
    def any(self) -> bool:
        """Whether anything was changed."""
        return bool(self.created or self.replaced)

    def lines(self) -> list[str]:
        """Return what people read, a line each."""
        parts = (("created", self.created), ("replaced", self.replaced), ("unchanged", self.unchanged))
        nouns = dict.fromkeys(noun for _, counts in parts for noun in counts)
        counted = [
            f"{noun}: " + ", ".join(f"{counts[noun]:,} {verb}" for verb, counts in parts if counts[noun])
            for noun in nouns
        ]
        return [*counted, *self.notes]


@contextmanager
def at_place(place: Path) -> Iterator[None]:
    """Raise the errors of the block as `SeedError`s of a place."""
    try:
        yield
    except RequestError as error:
        raise SeedError(place, str(error)) from None
    except OSError as error:
        raise SeedError(place, f"cannot read {error.filename}: {error.strerror}") from None


class Application:
    """One application of a seed to an account.

    Args:
        sender: of the account.
        changes: counts what is done.
    """

    def __init__(self, sender: Sender, changes: Changes) -> None:
        self._sender = sender
        self._changes = changes

    def run(self, seed: AccountSeed) -> None:
        """Apply all that a seed has for the account, but for keys and switches.

        Raises:
            SeedError: the server rejects something, or a file cannot be read.
        """
        for service, parts in seed.services.items():
            with at_place((*seed.at, "services", service)):
                self._service(service, parts)
        for table in seed.tables:
            self._table(table)
        for queue in seed.queues:
            with at_place(queue.at):
                self._queue(queue)
        for container in seed.containers:
            self._container(container)

    def _count(self, noun: str, *, found: bool, same: bool = True) -> None:
        changes = self._changes
        counts = changes.created if not found else changes.unchanged if same else changes.replaced
        counts[noun] += 1

    def _service(self, service: str, parts: Parts) -> None:
        found = service_parts(self._sender, service)
        different = {name: part for name, part in parts.items() if not is_same_part(part, found.get(name))}
        if different:
            set_service_parts(self._sender, service, different)
        self._count("settings of services", found=True, same=not different)

    def _policies(self, wanted: Policies, found: Policies, write: Callable[[Policies], None]) -> bool:
        """Set the policies that differ, and keep the other ones; return whether none differed."""
        merged: dict[str, Policy] = {**found, **wanted}
        if merged == found:
            return True
        if len(merged) > POLICIES_MAX:
            raise RequestError(f"there would be more than {POLICIES_MAX} policies; delete some of {', '.join(found)}")
        write(merged)
        return False

    def _table(self, seed: TableSeed) -> None:
        sender, name = self._sender, seed.name
        with at_place(seed.at):
            found = tables.has_table(sender, name)
            if not found:
                tables.create_table(sender, name)
            same = not seed.policies or self._policies(
                seed.policies, tables.table_policies(sender, name), lambda all_: _set_table(sender, name, all_)
            )
            self._count("tables", found=found, same=same)
        places = {entity[:2]: at for at, entity in seed.rows}
        different = [entity for at, entity in seed.rows if self._differs(name, at, entity, is_new=not found)]
        for batch in tables.batches(sorted(different, key=lambda entity: entity.partition)):
            try:
                tables.put_entities(sender, name, batch)
            except RequestError as error:
                wrong = error.entity if isinstance(error, tables.EntityRejectedError) else batch[0]
                raise SeedError(places[wrong[:2]], str(error)) from None

    def _differs(self, table: str, at: Path, entity: tables.Entity, *, is_new: bool) -> bool:
        with at_place(at):
            found = None if is_new else tables.find_entity(self._sender, table, *entity[:2])
        self._count("rows", found=found is not None, same=found == entity)
        return found != entity

    def _queue(self, seed: QueueSeed) -> None:
        sender, name = self._sender, seed.name
        found = queues.find_queue(sender, name)
        same = True
        if found is None:
            queues.create_queue(sender, name, seed.metadata or {})
        elif seed.metadata is not None and not is_same_metadata(found.metadata, seed.metadata):
            queues.set_queue_metadata(sender, name, seed.metadata)
            same = False
        if seed.policies:
            given = queues.queue_policies(sender, name)
            same &= self._policies(seed.policies, given, lambda all_: queues.set_queue_policies(sender, name, all_))
        self._count("queues", found=found is not None, same=same)
        if seed.messages:
            self._messages(seed, 0 if found is None else found.messages)

    def _messages(self, seed: QueueSeed, count: int) -> None:
        """Put the messages that a queue lacks, if all that it has can be seen."""
        there: Counter[str] = Counter()
        if count:
            peeked = queues.peek_messages(self._sender, seed.name)
            if len(peeked) < count:
                self._changes.notes.append(f"queue {seed.name}: has {count:,} messages already, so none is put")
                return
            there.update(message.text for message in peeked)
        for message in seed.messages:
            found = there[message.text] > 0
            there[message.text] -= 1
            if not found:
                queues.put_message(self._sender, seed.name, message)
            self._count("messages", found=found)

    def _container(self, seed: ContainerSeed) -> None:
        with at_place(seed.at):
            found = containers.find_container(self._sender, seed.name)
            same = True
            if found is None:
                containers.create_container(self._sender, seed.name, seed.metadata or {}, seed.public or "")
            else:
                same = self._settle_container(seed, found)
            if seed.policies and found is None:
                containers.set_container_access(self._sender, seed.name, seed.public or "", seed.policies)
            self._count("containers", found=found is not None, same=same)
        for blob in seed.blobs:
            with at_place(blob.at):
                self._blob(blob, is_new=found is None)

    def _settle_container(self, seed: ContainerSeed, found: containers.ContainerState) -> bool:
        """Replace what differs of a container; return whether nothing did."""
        same = True
        if seed.metadata is not None and not is_same_metadata(found.metadata, seed.metadata):
            containers.set_container_metadata(self._sender, seed.name, seed.metadata)
            same = False
        if seed.public is not None or seed.policies:
            access = containers.container_access(self._sender, seed.name)
            public = access.public if seed.public is None else seed.public
            merged = {**access.policies, **seed.policies}
            if (public, merged) != tuple(access):
                containers.set_container_access(self._sender, seed.name, public, merged)
                same = False
        return same

    def _blob(self, seed: BlobSeed, *, is_new: bool) -> None:
        with _opened(seed) as content:
            state = _with_content(seed.state, content)
            found = None if is_new else blobs.find_blob(self._sender, seed.place)
            same = found is not None and self._is_same_blob(seed, state, found)
            if not same:
                blobs.write_blob(self._sender, seed.place, state, seed.tags or {}, _reader(content))
            self._count("blobs", found=found is not None, same=same)

    def _is_same_blob(self, seed: BlobSeed, state: blobs.BlobState, found: blobs.BlobState) -> bool:
        if (found.kind, found.length) != (state.kind, state.length) or (state.tier and state.tier != found.tier):
            return False
        if dict(found.fields) != dict(state.fields) or not is_same_metadata(found.metadata, state.metadata):
            return False
        if seed.tags is not None and blobs.blob_tags(self._sender, seed.place, found) != seed.tags:
            return False
        return state.md5 == (found.md5 or blobs.content_md5(self._sender, seed.place, found.length))


def _set_table(sender: Sender, table: str, policies: Policies) -> None:
    tables.set_table_policies(sender, table, policies)


@contextmanager
def _opened(seed: BlobSeed) -> Iterator[IO[bytes]]:
    if seed.file is None:
        yield BytesIO(seed.data or b"")
    else:
        with seed.file.open("rb") as opened:
            yield opened


def _with_content(state: blobs.BlobState, content: IO[bytes]) -> blobs.BlobState:
    """Return a state with the length and the MD5 of a content."""
    digest, length = hashlib.md5(usedforsecurity=False), 0
    while piece := content.read(blobs.PIECE_BYTES):
        digest.update(piece)
        length += len(piece)
    return state._replace(length=length, md5=b64encode(digest.digest()).decode())


def _reader(content: IO[bytes]) -> blobs.Read:
    def read(start: int, stop: int) -> bytes:
        content.seek(start)
        return content.read(stop - start)

    return read
