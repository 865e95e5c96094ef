"""Other keys for the entities of a table, made of its real keys, as the study and the design guide advise.

Sources: the study *How to get most out of Windows Azure Tables* (2010), on buckets and concatenated keys; the table
design guide, on the log tail pattern.
"""

import math
import re
from datetime import UTC, datetime, timedelta
from zlib import crc32

from lazulite.traffic.key_sample import KeySample

SEPARATOR = ";"
ROWS_OF_PARTITION = 20
"""The rows that a partition has at least: batches of so many are worth most, by the study."""
_BATCH_MAX = 100
_TICKS_MAX = 3_155_378_975_999_999_999
"""9999-12-31T23:59:59.9999999 in .NET's ticks, which are 100 ns since the year 1."""
_EPOCH = datetime(1, 1, 1, tzinfo=UTC)
_UNIX_EPOCH_TICKS = 621_355_968_000_000_000
_DIGITS = re.compile(r"\d{10,19}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d.*)?", re.ASCII)
_FIRST_WORD = re.compile(r"[^;:_/|\- ]{1,32}")


def buckets_for(peak: float, target: float, least: int) -> int:
    """Return how many buckets a peak rate needs, each at half of a partition's target at most."""
    return max(least, math.ceil(2 * peak / target))


def with_prefix(key: str, buckets: int) -> str:
    """Return a PartitionKey behind the number of its bucket, which is a hash of it."""
    return f"{_bucket(key, buckets)}{SEPARATOR}{key}"


def with_suffix(key: str, buckets: int, row: str | None) -> str:
    """Return a PartitionKey before the number of a bucket, which is a hash of the RowKey."""
    return f"{key}{SEPARATOR}{_bucket(row or key, buckets)}"


def _bucket(text: str, buckets: int) -> str:
    return f"{crc32(text.encode('utf-8', 'surrogatepass')) % buckets:0{len(str(buckets - 1))}d}"


def concatenated(key: str, row: str | None) -> str | None:
    """Return a PartitionKey with the first word of a RowKey behind it; None if that is the whole RowKey, or nothing."""
    word = _FIRST_WORD.match(row or "")
    return None if word is None or word[0] == row else f"{key}{SEPARATOR}{word[0]}"


def reversed_ticks(key: str) -> str | None:
    """Return the reversed ticks of a key that is a time: the later, the less. None for another key.

    A time is a date of ISO 8601, seconds or milliseconds since 1970, or ticks.
    """
    ticks = _ticks(key)
    return None if ticks is None else f"{_TICKS_MAX - ticks:019d}"


def _ticks(key: str) -> int | None:
    if _DATE.fullmatch(key):
        try:
            moment = datetime.fromisoformat(key)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1) * 10
    if not _DIGITS.fullmatch(key):
        return None
    number, units = int(key), {10: 10_000_000, 13: 10_000}.get(len(key))
    ticks = number if units is None else _UNIX_EPOCH_TICKS + number * units
    years = ticks // 315_569_520_000_000 + 1
    return ticks if 1970 <= years <= 2100 and (units or len(key) >= 18) else None


def coarser(key: str, sample: KeySample) -> tuple[str, str] | None:
    """Return a PartitionKey of fewer characters, which many partitions share, and the rest of it for the RowKey.

    None: no number of characters makes partitions that are neither finer nor much coarser than a batch.
    """
    for length in range(len(key) - 1, 0, -1):
        rows = sample.rows / max(sample.partitions_by(length), 1)
        if rows >= ROWS_OF_PARTITION:
            return (key[:length], key[length:]) if rows <= _BATCH_MAX**2 else None
    return None


def hashed(key: str, sample: KeySample) -> str:
    """Return the number of a bucket as PartitionKey, so that a bucket has as many rows as a batch."""
    return _bucket(key, max(2, sample.rows // _BATCH_MAX))
