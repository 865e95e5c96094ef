"""What a table needs of a cipher."""

from collections.abc import Mapping
from typing import Protocol

from lazulite_patterns.effects.tables import EntityKey, Kind, Properties


class Ciphers(Protocol):
    """Encrypts and decrypts some properties of entities."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the properties that are encrypted, as the table has them."""

    def of(self, table: str) -> "Ciphers":
        """Return what encrypts the properties of a table."""

    def encrypt(self, key: EntityKey, properties: Properties, kind: Kind) -> dict[str, object]:
        """Return the properties of a write as they are stored.

        Raises:
            EntityValueError: a property cannot be encrypted, or not by this kind of write.
        """

    def decrypt(self, key: EntityKey, properties: Properties) -> dict[str, object]:
        """Return the properties of a row as they were written.

        Raises:
            Undecryptable: one of them was changed, moved, or encrypted with another key.
        """

    def blind(self, name: str, value: object) -> Mapping[str, object]:
        """Return the property by which rows with a value are found; nothing if there is none."""

    def is_current(self, properties: Properties) -> bool:
        """Tell whether a row is stored as this cipher would write it now, with its current key."""
