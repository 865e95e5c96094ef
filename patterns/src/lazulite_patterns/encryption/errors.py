"""What is wrong with an encrypted property."""

from lazulite_patterns.entities.errors import EntityFormatError


class Undecryptable(EntityFormatError):  # noqa: N818 - it is a state of a row
    """A property cannot be decrypted: it was changed, moved from another place, or encrypted with another key."""
