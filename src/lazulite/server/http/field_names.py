"""Names of header fields in lower case, cached by their bytes on the wire: clients repeat theirs on each request."""

from lazulite.protocol.fields import lower_name

_NAMES_MAX = 1024
_LENGTH_MAX = 64


class _FieldNames(dict[bytes, str]):
    """Names in lower case by their bytes."""

    def __missing__(self, name: bytes) -> str:
        lower = lower_name(name.decode("latin-1"))
        if len(self) < _NAMES_MAX and len(name) < _LENGTH_MAX:
            self[name] = lower
        return lower


field_name = _FieldNames()
"""Maps the bytes of any name; keeps the first ones that are short."""
