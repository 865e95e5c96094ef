"""Where service properties are kept: one row for each account and service.

Invariant: what the cache holds is what the engine holds; it is forgotten in the step that changes it.
"""

import json
from collections.abc import Mapping, Sequence

from lazulite.engine.contract import Engine
from lazulite.protocol.service_properties import PropertiesUpdate, ServiceProperties
from lazulite.protocol.spaces import SERVICE_PROPERTIES


class PropertiesStore:
    """The service properties of all accounts for one service (`table`, …)."""

    def __init__(self, engine: Engine, service: str) -> None:
        self._engine = engine
        self._service = service
        self._cache: dict[str, ServiceProperties] = {}
        self._changes = 0

    def known(self, account: str) -> ServiceProperties | None:
        """Return an account's properties if they are at hand."""
        return self._cache.get(account)

    async def get(self, account: str) -> ServiceProperties:
        """Return an account's properties; the defaults if none were ever set."""
        known = self._cache.get(account)
        if known is not None:
            return known
        changes = self._changes
        properties = _decode(await self._engine.get(SERVICE_PROPERTIES, account, self._service))
        if changes == self._changes:
            self._cache[account] = properties
        return properties

    async def update(self, account: str, update: PropertiesUpdate) -> None:
        """Merge the roots that `update` has into an account's properties."""

        def decide(current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
            merged = _decode(current[0]).merge(update)
            return {self._service: json.dumps(merged.to_json()).encode()}

        try:
            await self._engine.commit(SERVICE_PROPERTIES, account, [self._service], decide)
        finally:
            self._changes += 1
            self._cache.pop(account, None)


def _decode(value: bytes | None) -> ServiceProperties:
    return ServiceProperties() if value is None else ServiceProperties.from_json(json.loads(value))
