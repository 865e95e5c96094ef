"""Pages as bytes: the items of a page within the texts that make one document of them."""

from typing import NamedTuple


class FeedFrame(NamedTuple):
    """The document of a page without its items."""

    opening: bytes
    between: bytes
    """What stands between two items."""
    closing: bytes

    def whole(self, items: list[bytes]) -> bytes:
        """Return the document; takes the items over."""
        if not items:
            return self.opening + self.closing
        items[0] = self.opening + items[0]  # Joined once.
        items[-1] += self.closing
        return self.between.join(items)

    def parts(self, items: list[bytes]) -> list[bytes]:
        """Return the parts of the document, in order."""
        if not items:
            return [self.opening, self.closing]
        parts = [self.between] * (2 * len(items) + 1)
        parts[0] = self.opening
        parts[1::2] = items
        parts[-1] = self.closing
        return parts
