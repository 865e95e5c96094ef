"""Shapes of entities: of any size, of many properties, series of numbers, log tails, copies and links."""

from lazulite_patterns.shapes.blob_log import BlobLog
from lazulite_patterns.shapes.copies import Copies
from lazulite_patterns.shapes.errors import Inconsistent, PeriodExpired, Referred
from lazulite_patterns.shapes.fat import Fat
from lazulite_patterns.shapes.large import Large
from lazulite_patterns.shapes.links import Copied, Ref
from lazulite_patterns.shapes.lookup import Lookup
from lazulite_patterns.shapes.periods import Periods
from lazulite_patterns.shapes.protocols.large import Loaded
from lazulite_patterns.shapes.protocols.log_format import LogRecord
from lazulite_patterns.shapes.protocols.references import BlobReference
from lazulite_patterns.shapes.protocols.tail import Entry
from lazulite_patterns.shapes.series import Series
from lazulite_patterns.shapes.tail import Tail
from lazulite_patterns.shapes.wide import Wide

__all__ = [
    "BlobLog",
    "BlobReference",
    "Copied",
    "Copies",
    "Entry",
    "Fat",
    "Inconsistent",
    "Large",
    "Loaded",
    "LogRecord",
    "Lookup",
    "PeriodExpired",
    "Periods",
    "Ref",
    "Referred",
    "Series",
    "Tail",
    "Wide",
]
