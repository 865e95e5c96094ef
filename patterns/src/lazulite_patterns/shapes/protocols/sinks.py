"""Where the parts of a blob go."""

from typing import Any
from typing import Protocol as Interface

from lazulite_patterns.effects.calls import Call
from lazulite_patterns.effects.effect import Protocol, immediately, perform


class Sink(Interface):
    """Takes parts in their order."""

    def restart(self) -> Protocol[None]:
        """Forget all parts: they come again, and others."""

    def write(self, part: bytes) -> Protocol[None]:
        """Take a part."""


class Memory:
    """Keeps the parts."""

    def __init__(self) -> None:
        """Begin without one."""
        self._parts: list[bytes] = []

    @property
    def data(self) -> bytes:
        """All parts."""
        return b"".join(self._parts)

    def restart(self) -> Protocol[None]:
        """Forget all parts."""
        self._parts.clear()
        return immediately(None)

    def write(self, part: bytes) -> Protocol[None]:
        """Keep a part."""
        self._parts.append(part)
        return immediately(None)


class File:
    """Writes the parts to a file of the program, from where it is."""

    def __init__(self, file: Any) -> None:
        """Take a file that can be positioned."""
        self._file = file
        self._start = file.tell()

    def restart(self) -> Protocol[None]:
        """Go back to the start, and cut off what was written."""
        yield from perform(Call(self._file.seek, (self._start,)))
        yield from perform(Call(self._file.truncate))

    def write(self, part: bytes) -> Protocol[None]:
        """Write a part."""
        yield from perform(Call(self._file.write, (part,)))
