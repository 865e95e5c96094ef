"""A check at startup that the database keeps what it acknowledges, for people to read."""

from collections.abc import Iterator

from lazulite.engine.postgres.connection import Connection

_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")
_READ = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY ($1::text[])"


async def warnings(connection: Connection) -> list[str]:
    """Return a line for each setting of a PostgreSQL server that can lose acknowledged writes, and when."""
    settings = {record["name"]: record["setting"] for record in await connection.fetch(_READ, list(_SETTINGS))}
    return list(_warnings(settings))


def _warnings(settings: dict[str, str]) -> Iterator[str]:
    if settings.get("synchronous_commit") == "off":
        yield (
            "the database has synchronous_commit = off: when it crashes, what was acknowledged in its last moments is"
            " lost, and may have been read before"
        )
    if settings.get("synchronous_commit") == "local" and settings.get("synchronous_standby_names"):
        yield (
            "the database has synchronous_commit = local: when a standby takes over, what was acknowledged and not yet"
            " sent to it is lost"
        )
    for name in ("fsync", "full_page_writes"):
        if settings.get(name) == "off":
            yield f"the database has {name} = off: when its machine crashes, the store may be damaged"
