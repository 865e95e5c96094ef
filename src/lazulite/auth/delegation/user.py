"""A user that has user delegation keys: the roles that bound each SAS of those keys.

The server has no directory of users. It takes the roles of a user from the newest token of the user that it saw.
"""

import json
from dataclasses import dataclass

from lazulite.auth.grant import Identity

_SEPARATOR = "\n"
"""Stands in no id."""


@dataclass(frozen=True, slots=True)
class DelegatingUser:
    """A user, as stored."""

    identity: Identity
    until: int
    """The expiry in ticks of the user's last key."""

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        oid, tid, roles, issued = self.identity
        fields = {"oid": oid, "tid": tid, "roles": sorted(roles), "issued": issued, "until": self.until}
        return json.dumps(fields).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> "DelegatingUser":
        """Read the stored form. Raises what reading malformed bytes raises."""
        fields = json.loads(value)
        identity = Identity(fields["oid"], fields["tid"], frozenset(fields["roles"]), float(fields["issued"]))
        return cls(identity, int(fields["until"]))

    def renewed(self, identity: Identity) -> "DelegatingUser":
        """Return the user after another token of the same identity: the token that was issued last has the roles."""
        return self if identity.issued < self.identity.issued else DelegatingUser(identity, self.until)


def row_of(oid: str, tid: str) -> str:
    """Return the end of the row of a user."""
    return f"{tid}{_SEPARATOR}{oid}"
