"""A resource that an account names and that has a space of its own, such as a table or a queue, as a stored row."""

import json
from dataclasses import asdict, dataclass, field
from typing import Self

from lazulite.records.stored_policy import StoredAccessPolicy


@dataclass(frozen=True, slots=True)
class NamedResource:
    """One resource; its stored form is the JSON of its fields."""

    name: str
    """As its creator spelled it."""
    space: int
    """The number of the space that holds its rows."""
    policies: tuple[StoredAccessPolicy, ...] = field(default=(), kw_only=True)

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> Self:
        """Read the stored form."""
        fields = json.loads(value)
        policies = tuple(StoredAccessPolicy(**policy) for policy in fields.pop("policies"))
        return cls(**fields, policies=policies)
