"""The containers of all accounts: their names, spaces, properties, metadata and stored access policies.

A container is a row of the space `CONTAINERS`: partition = account, row = its name, value = JSON of a `Container`. One
that was deleted and can be restored has another row (`Container.row`).
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, replace
from typing import Self
from uuid import UUID

from lazulite.blob.model.blob import etag_of
from lazulite.blob.model.conditions import Validators
from lazulite.blob.model.lease import Lease
from lazulite.engine.commit import Decision, compare_and_swap
from lazulite.engine.content.contract import ContentStore
from lazulite.engine.contract import Clock, Engine, KeyRange
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.metadata import Metadata
from lazulite.records.catalog import NamedResource, ResourceCatalog, StoredAccessPolicy, TimeToLive
from lazulite.records.spaces import CONTAINERS

_DELETED = "~"
"""Begins the row of a deleted container that can be restored: name, slash, version. No container's name has it."""


@dataclass(frozen=True, slots=True)
class Container(NamedResource):
    """One container."""

    modified: int
    """The Last-Modified in ticks; the ETag is made of it."""
    public_access: str = ""
    """What a request without credentials may read: `container`, `blob`, or "" for nothing."""
    metadata: Metadata = ()
    lease: Lease | None = None
    deleted: int = 0
    """When it was deleted but kept, in ticks; 0: it is not deleted."""
    expires: int = 0
    """When a deleted one goes forever, in ticks."""

    @property
    def row(self) -> str:
        """The row of the container in the catalog."""
        return f"{_DELETED}{self.name}/{self.version}" if self.deleted else self.name

    @property
    def version(self) -> str:
        """The name of a deleted container among those of its name."""
        return f"{self.deleted:016X}"

    @property
    def etag(self) -> str:
        """The ETag, without quotes."""
        return etag_of(self.modified)

    @property
    def validators(self) -> Validators:
        """The state that conditional headers are compared with."""
        return Validators(self.etag, self.modified)

    def to_bytes(self) -> bytes:
        """See `NamedResource`."""
        return json.dumps(asdict(self), default=str).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> Self:
        """See `NamedResource`."""
        fields = json.loads(value)
        policies = tuple(StoredAccessPolicy(**policy) for policy in fields.pop("policies"))
        metadata = tuple((name, text) for name, text in fields.pop("metadata"))
        lease = fields.pop("lease")
        if lease is not None:
            lease = Lease(**{**lease, "id": UUID(lease["id"])})
        return cls(**fields, policies=policies, metadata=metadata, lease=lease)


class Catalog(ResourceCatalog[Container]):
    """The containers of all accounts; one that does not exist is a `ContainerNotFound`.

    Args:
        engine: holds the rows.
        clock: the time now.
        contents: of the blobs; None where another process deletes them.
        ttl: as of `ResourceCatalog`.
    """

    def __init__(
        self, engine: Engine, clock: Clock, contents: ContentStore | None = None, ttl: TimeToLive | None = None
    ) -> None:
        super().__init__(engine, CONTAINERS, Container, "ContainerNotFound", first_name="$", listed=True, ttl=ttl)
        self._clock = clock
        self._contents = contents

    async def public_access(self, account: str, name: str) -> str:
        """Return the public access of a container; "" for none, and without such a container."""
        container = await self.get(account, name)
        return "" if container is None else container.public_access

    async def create(self, account: str, container: Container) -> Container:
        """Create a container; `container` tells all but its space. Return it.

        Raises:
            ServiceError: `ContainerAlreadyExists`.
        """

        def reject(_: Container) -> None:
            raise ServiceError("ContainerAlreadyExists")

        added = await self.add(account, container.name, lambda space: replace(container, space=space), reject)
        if added is None:
            raise ServiceError("ContainerAlreadyExists")
        return added

    async def delete_if(
        self,
        account: str,
        name: str,
        check: Callable[[Container], None],
        keep_until: Callable[[int], int] | None = None,
    ) -> None:
        """Delete a container with its blobs, unless `check` raises.

        Args:
            account: the account.
            name: of the container.
            check: takes the container.
            keep_until: takes the time now to the time until which it can be restored, in ticks; None: not at all.

        Raises:
            ServiceError: `ContainerNotFound`, or an error of `check`.
        """
        if keep_until is None:

            def remove(container: Container) -> None:
                check(container)

            await self._replace(account, name, remove)
            return

        now = self._clock()  # Once: an engine that repeats the decision must find the same row named.

        def keep(container: Container) -> Decision[None]:
            check(container)
            deleted = replace(container, lease=None, deleted=now, expires=keep_until(now))
            return Decision({name: None, deleted.row: deleted.to_bytes()}, None)

        await self._change_present(account, name, keep)

    async def list(self, account: str, start: str, prefix: str = "") -> AsyncGenerator[Container, None]:
        """See `ResourceCatalog`. Deleted containers, which come last, are left out."""
        async with aclosing(super().list(account, start, prefix)) as containers:
            async for container in containers:
                if container.deleted:
                    return
                yield container

    async def deleted(self, account: str, prefix: str = "") -> AsyncGenerator[Container, None]:
        """Yield the containers of an account that can be restored, in the order of their names."""
        async with aclosing(super().list(account, _DELETED, f"{_DELETED}{prefix}")) as containers:
            async for container in containers:
                yield container

    async def restore(self, account: str, name: str, version: str, target: str) -> None:
        """Restore a deleted container under a name.

        Raises:
            ServiceError: `ContainerNotFound`, there is no such deleted container; `ContainerAlreadyExists`.
        """
        row = f"{_DELETED}{name}/{version.upper()}"
        stored = await self._engine.get(self.space, account, row)
        if stored is None:
            raise ServiceError("ContainerNotFound")
        if await self.read(account, target) is not None:
            raise ServiceError("ContainerAlreadyExists")
        deleted = Container.from_bytes(stored)
        restored = replace(
            deleted, name=target, deleted=0, expires=0, modified=max(self._clock(), deleted.modified + 1)
        )
        swap = compare_and_swap({row: stored, target: None}, {row: None, target: restored.to_bytes()})
        with self._cache.changing((account, target)):
            if not await self._engine.commit(self.space, account, swap):
                raise ServiceError("ContainerAlreadyExists")

    async def remove_expired(self) -> None:
        """Remove forever the deleted containers that cannot be restored any more. Raises `EngineError`."""
        now = self._clock()
        async with aclosing(self._rows(KeyRange(("", ""), None))) as rows:
            expired = [
                (account, row)
                async for (account, row), value in rows
                if row.startswith(_DELETED) and Container.from_bytes(value).expires <= now
            ]
        for account, row in expired:
            with suppress(ServiceError):  # It was restored meanwhile.
                await self._replace(account, row, lambda _: None)

    async def _close(self, space: int) -> None:
        """Delete the contents of a container's blobs."""
        if self._contents is not None:
            await self._contents.drop(space)
