"""A read-only inspection of the files of contents. No process may delete some of them meanwhile."""

from contextlib import closing
from pathlib import Path

from lazulite.engine.content import generations
from lazulite.engine.content.contract import Claim, ContentId, ContentMissingError
from lazulite.engine.content.footer import windows
from lazulite.engine.content.linked_file import open_claimed

_BITS = 4096


class ContentSet:
    """Names of contents: half a kilobyte for each 4,096 neighbours."""

    def __init__(self) -> None:
        self._bits: dict[tuple[int, int], int] = {}

    def add(self, content: ContentId) -> bool:
        """Add a name; return whether it is new."""
        key, bit = (content.space, content.number // _BITS), 1 << content.number % _BITS
        before = self._bits.get(key, 0)
        self._bits[key] = before | bit
        return not before & bit


def read_whole(directory: Path, content: ContentId, claim: Claim | None = None) -> int:
    """Read every byte of a content, and return their number. It blocks.

    Args:
        directory: of all contents.
        content: the name.
        claim: what a row says of it.

    Raises:
        ContentMissingError: there is no such content.
        ContentDamagedError: it is damaged, was never sealed, or is not the one of the claim.
        OSError: it cannot be read.
    """
    for path in generations.candidates(directory / str(content.space), content.number):
        try:
            file = open_claimed(path, claim)
        except FileNotFoundError:
            continue
        with closing(file):
            for number in range(windows(file.length)):
                file.read(number)
            return file.length
    raise ContentMissingError("it is missing")
