"""The order of ETags: each spells the instant of its write, to 100 ns."""

import re

_ETAG = re.compile(r"""W/"datetime'(\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d)(?:\.(\d{1,7}))?Z'\"""")


def instant(etag: str) -> str:
    """The instant in an ETag, padded so that later ones compare greater: `2017-08-30T13%3A20%3A33.4139140`."""
    match = _ETAG.fullmatch(etag)
    assert match is not None, f"not an ETag of the Table service: {etag!r}"
    return f"{match[1]}.{(match[2] or '').ljust(7, '0')}"
