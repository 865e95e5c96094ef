"""Where service properties are kept: one row for each account and service."""

import json
from collections.abc import Mapping

from lazulite.engine.compare_and_swap import rewrite
from lazulite.engine.contract import Engine, Key
from lazulite.engine.remote.messages import Watcher
from lazulite.records.row_cache import Lifetime, RowCache
from lazulite.records.spaces import SERVICE_PROPERTIES
from lazulite.service.properties import PropertiesUpdate, ServiceProperties


class PropertiesStore:
    """The service properties of all accounts for one service (`table`, …).

    Args:
        engine: where they are.
        service: whose they are.
        lifetime: how long they are remembered where others change them unannounced.
    """

    def __init__(self, engine: Engine, service: str, lifetime: Lifetime | None = None) -> None:
        self._engine = engine
        self._service = service
        self._cache: RowCache[Key, ServiceProperties] = RowCache(lifetime=lifetime)

    @property
    def watcher(self) -> Watcher:
        """What is to be told when others change the rows of `SERVICE_PROPERTIES`."""
        return self._cache

    def known(self, account: str) -> ServiceProperties | None:
        """Return an account's properties if they are at hand."""
        return self._cache.get((account, self._service))

    async def get(self, account: str) -> ServiceProperties:
        """Return an account's properties; the defaults if none were ever set."""
        known = self._cache.get((account, self._service))
        if known is not None:
            return known
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
            await rewrite(self._engine, SERVICE_PROPERTIES, account, self._service, merge)


def _decode(value: bytes | None) -> ServiceProperties:
    return ServiceProperties() if value is None else ServiceProperties.from_json(json.loads(value))
