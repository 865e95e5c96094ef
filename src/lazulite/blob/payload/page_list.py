"""The `PageList` document of Get Page Ranges. Source: REST reference, Get Page Ranges."""

from collections.abc import Iterable, Iterator
from itertools import islice

from lazulite.blob.model.page_ranges import PageRange
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml

_RANGES_OF_A_STEP = 500


def write_page_list(ranges: Iterable[PageRange], marker: str | None = None) -> Steps[list[bytes]]:
    """Return the response in steps, in parts.

    Args:
        ranges: in ascending order.
        marker: of the next page, "" if this is the last one; None: the request did not ask for pages.
    """
    end = "" if marker is None else xml.leaf("NextMarker", marker)
    remaining: Iterator[PageRange] = iter(ranges)
    parts: list[bytes] = []
    while some := "".join(map(_range, islice(remaining, _RANGES_OF_A_STEP))):
        parts.append(some.encode())
        yield
    if not parts and not end:
        return [xml.document("<PageList />")]
    return [xml.document("<PageList>"), *parts, f"{end}</PageList>".encode()]


def _range(found: PageRange) -> str:
    name = "ClearRange" if found.is_cleared else "PageRange"
    return f"<{name}><Start>{found.start}</Start><End>{found.stop - 1}</End></{name}>"
