"""A read-only inspection of the files of contents. No process may delete some of them meanwhile."""

from contextlib import closing
from pathlib import Path

from lazulite.engine.content import generations
from lazulite.engine.content.content_file import SealedFile
from lazulite.engine.content.contract import ContentId, ContentMissingError
from lazulite.engine.content.footer import windows

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


def read_whole(directory: Path, content: ContentId) -> int:
    """Read every byte of a content, and return their number. It blocks.

    Args:
        directory: of all contents.
        content: the name.

    Raises:
        ContentMissingError: there is no such content.
        ContentDamagedError: it is damaged, or was never sealed.
        OSError: it cannot be read.
    """
    for path in generations.candidates(directory / str(content.space), content.number):
        try:
            file = SealedFile(path)
        except FileNotFoundError:
            continue
        with closing(file):
            for number in range(windows(file.length)):
                file.read(number)
            return file.length
    raise ContentMissingError("it is missing")
