"""The asynchronous twins of `lazulite_patterns.shapes`."""

from lazulite_patterns.aio.shapes.blob_log import BlobLog
from lazulite_patterns.aio.shapes.copies import Copies
from lazulite_patterns.aio.shapes.fat import Fat
from lazulite_patterns.aio.shapes.large import Large
from lazulite_patterns.aio.shapes.lookup import Lookup
from lazulite_patterns.aio.shapes.periods import Periods
from lazulite_patterns.aio.shapes.series import Series
from lazulite_patterns.aio.shapes.tail import Tail
from lazulite_patterns.aio.shapes.wide import Wide

__all__ = ["BlobLog", "Copies", "Fat", "Large", "Lookup", "Periods", "Series", "Tail", "Wide"]
