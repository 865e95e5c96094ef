"""Counts of latencies, by buckets whose width is 1 % of the latency: small, exact enough, and easily added up."""

import math
from collections.abc import Mapping, MutableMapping

BUCKETS_PER_OCTAVE = 64
"""So many buckets until the latency has doubled."""


def bucket_of(seconds: float) -> int:
    """Return the bucket of a latency above 0."""
    return math.floor(math.log2(seconds) * BUCKETS_PER_OCTAVE)


def middle(bucket: float) -> float:
    """Return the latency in the middle of a bucket, in seconds."""
    return float(2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE))


def add(counts: MutableMapping[int, int], more: Mapping[int, int]) -> None:
    """Add the counts of other latencies."""
    for bucket, count in more.items():
        counts[bucket] = counts.get(bucket, 0) + count


def quantile(counts: Mapping[int, int], share: float) -> float:
    """Return the latency that a share of all latencies does not exceed, in seconds; 0 without latencies."""
    left = share * sum(counts.values())
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return middle(bucket)
    return 0.0


def mean(counts: Mapping[int, int]) -> float:
    """Return the mean latency in seconds; 0 without latencies."""
    return sum(middle(bucket) * count for bucket, count in counts.items()) / (sum(counts.values()) or 1)
