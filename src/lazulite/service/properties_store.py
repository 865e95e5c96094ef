"""Where service properties are kept: one row for each account and service."""

import json
from collections.abc import Mapping

from lazulite.engine.compare_and_swap import update_row
from lazulite.engine.contract import Engine, Key
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.records.row_cache import RowCache, TimeToLive
from lazulite.records.spaces import SERVICE_PROPERTIES, Space
from lazulite.service.properties import PropertiesUpdate, ServiceProperties


def _verify(_: Key, value: bytes) -> None:
    ServiceProperties.from_json(json.loads(value))


PROPERTIES_SPACE = Space(
    number=SERVICE_PROPERTIES,
    owner="",
    title="the service properties",
    watched=True,
    copied=True,
    content=True,
    verify=_verify,
)


class PropertiesStore:
    """The service properties of all accounts for one service (`table`, …).

    Args:
        engine: holds the rows.
        service: the service's name.
        ttl: how long a row is cached if other processes change rows without invalidation; None: until it changes.
    """

    def __init__(self, engine: Engine, service: str, ttl: TimeToLive | None = None) -> None:
        self._engine = engine
        self._service = service
        self._cache: RowCache[Key, ServiceProperties] = RowCache(ttl=ttl)

    @property
    def invalidation(self) -> CacheInvalidation:
        """The cache to invalidate when other processes change rows of `SERVICE_PROPERTIES`."""
        return self._cache

    def cached(self, account: str) -> ServiceProperties | None:
        """Return an account's properties if they are cached."""
        return self._cache.get((account, self._service))

    async def get(self, account: str) -> ServiceProperties:
        """Return an account's properties; the defaults if none were ever set."""
        properties = self._cache.get((account, self._service))
        if properties is None:
            properties = await self._cache.renewed((account, self._service), lambda: self._read(account))
        return ServiceProperties() if properties is None else properties

    async def _read(self, account: str) -> ServiceProperties:
        before = self._cache.before_read()
        properties = _decode(await self._engine.get(SERVICE_PROPERTIES, account, self._service))
        self._cache.fill((account, self._service), properties, before)
        return properties

    async def update(self, account: str, update: PropertiesUpdate) -> None:
        """Merge the roots that `update` has into an account's properties."""

        def merge(current: bytes | None) -> Mapping[str, bytes | None]:
            merged = _decode(current).merge(update)
            return {self._service: json.dumps(merged.to_json()).encode()}

        with self._cache.changing((account, self._service)):
            await update_row(self._engine, SERVICE_PROPERTIES, account, self._service, merge)


def _decode(value: bytes | None) -> ServiceProperties:
    return ServiceProperties() if value is None else ServiceProperties.from_json(json.loads(value))
