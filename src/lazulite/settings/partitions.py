"""The settings of range partitions and scalability targets."""

from argparse import Namespace
from typing import Final, NamedTuple

from lazulite.partitions.targets import OFF, Targets, targets_from


class PartitionSettings(NamedTuple):
    """Range partitions, and what they are limited to."""

    targets: Targets | None
    """None: nothing is limited, until `lazulite targets set` says otherwise."""
    time_scale: float = 1
    """Divides the times of the balancer."""


NO_TARGETS: Final = PartitionSettings(None)
"""The settings of a server that is started without targets."""


def partition_settings(text: str, time_scale: float = 1) -> PartitionSettings:
    """Return the settings for the name or the file of targets; `OFF` is none of them.

    Raises:
        TargetsError: there are no such targets.
    """
    return PartitionSettings(None if text == OFF else targets_from(text), time_scale)


def partition_settings_from(args: Namespace) -> PartitionSettings:
    """Return the settings of `lazulite serve`.

    Raises:
        ValueError: the targets cannot be read, or there is a time scale without targets.
    """
    if args.targets is None:
        if args.time_scale is not None:
            raise ValueError("--time-scale needs --targets")
        return NO_TARGETS
    return partition_settings(args.targets, args.time_scale or 1)
