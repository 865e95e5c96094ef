"""The roles of the Table service: Azure's built-in ones (reference §14.7)."""

from lazulite.auth.bearer.rules import BearerConventions, Role
from lazulite.protocol.version import BEARER_SINCE

_READ = frozenset({"tables/read", "entities/read"})
_WRITE = frozenset({"tables/write", "tables/delete", "entities/write", "entities/delete"})

TABLE_ROLES = (
    Role("reader", "Storage Table Data Reader", "76199698-9eea-4c19-bc75-cec21354c6b6", _READ),
    Role("contributor", "Storage Table Data Contributor", "0a9a7e1f-b9d0-4cc4-a60e-0319b160aaa3", _READ | _WRITE),
)
TABLE_BEARER = BearerConventions(roles=TABLE_ROLES, challenge_since=BEARER_SINCE)
