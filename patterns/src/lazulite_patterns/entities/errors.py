"""What is wrong with an entity: each names the class and the property."""

from lazulite_patterns.errors import PatternsError


class SchemaError(PatternsError, TypeError):
    """A class cannot be an entity as it is declared."""


class EntityValueError(PatternsError, ValueError):
    """An entity has a value that the service would reject, or that its class does not allow. Nothing was sent."""


class EntityFormatError(PatternsError, ValueError):
    """A row of the service is none of the expected class."""
