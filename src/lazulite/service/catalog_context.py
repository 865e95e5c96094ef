"""The context of a service whose resources have names and spaces of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.records.catalog import NamedResource, ResourceCatalog, StoredAccessPolicy
from lazulite.service.call import ServiceContext

NamedResourceT = TypeVar("NamedResourceT", bound=NamedResource)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogContext(ServiceContext, Generic[NamedResourceT]):
    """What the operations of such a service work with; a service adds its own."""

    catalog: ResourceCatalog[NamedResourceT]

    def invalidations(self) -> Mapping[int, CacheInvalidation]:
        """See `ServiceContext`."""
        return {**ServiceContext.invalidations(self), self.catalog.space: self.catalog.invalidation}

    async def policies(self, account: str, resource: str) -> tuple[StoredAccessPolicy, ...]:
        """Return the stored access policies of a resource; none if it does not exist."""
        return await self.catalog.policies(account, resource)

    async def start(self) -> None:
        """Empty the spaces of resources whose deletion a crash interrupted."""
        await self.catalog.finish_drops()
