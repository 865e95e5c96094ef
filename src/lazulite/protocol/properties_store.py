"""Where service properties are kept: one row for each account and service."""

import json
from collections.abc import Mapping, Sequence

from lazulite.engine.contract import Engine
from lazulite.protocol.row_cache import RowCache
from lazulite.protocol.service_properties import PropertiesUpdate, ServiceProperties
from lazulite.protocol.spaces import SERVICE_PROPERTIES


class PropertiesStore:
    """The service properties of all accounts for one service (`table`, …)."""

    def __init__(self, engine: Engine, service: str) -> None:
        self._engine = engine
        self._service = service
        self._cache: RowCache[str, ServiceProperties] = RowCache()

    def known(self, account: str) -> ServiceProperties | None:
        """Return an account's properties if they are at hand."""
        return self._cache.get(account)

    async def get(self, account: str) -> ServiceProperties:
        """Return an account's properties; the defaults if none were ever set."""
        known = self._cache.get(account)
        if known is not None:
            return known
        before = self._cache.before_read()
        properties = _decode(await self._engine.get(SERVICE_PROPERTIES, account, self._service))
        self._cache.fill(account, properties, before)
        return properties

    async def update(self, account: str, update: PropertiesUpdate) -> None:
        """Merge the roots that `update` has into an account's properties."""

        def decide(current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
            merged = _decode(current[0]).merge(update)
            return {self._service: json.dumps(merged.to_json()).encode()}

        with self._cache.changing(account):
            await self._engine.commit(SERVICE_PROPERTIES, account, [self._service], decide)


def _decode(value: bytes | None) -> ServiceProperties:
    return ServiceProperties() if value is None else ServiceProperties.from_json(json.loads(value))
