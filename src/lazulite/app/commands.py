"""The commands that a server takes whatever it serves, for both sides; see `lazulite.control`."""

from dataclasses import dataclass

from lazulite.control.command import AccountArguments, Command, NoArguments

CHECKPOINT = Command("checkpoint", NoArguments, seconds_max=None)
"""Makes a checkpoint of a location, and has one item, the name of its directory there. The checkpoint is there until
the client hangs up. Checkpoints are made one after the other."""

COUNT_RESOURCES = Command("account-resources", AccountArguments)
"""Has one item: how many tables, queues and containers an account has, by their nouns, without zeros."""

REMOVE_DATA = Command("account-remove-data", AccountArguments, seconds_max=None)
"""Removes all that an account has; its item is empty."""

STATUS = Command("status", NoArguments)
"""Has an item for each process of the server: see `app.status`."""


@dataclass(frozen=True, slots=True)
class TrafficArguments:
    """What `TRAFFIC` is asked about."""

    name: str
    """Of the table."""
    account: str = ""
    """Empty: the only one."""
    service: str = "table"


TRAFFIC = Command("traffic", TrafficArguments)
"""Has the items of `traffic.codec` for one resource."""


@dataclass(frozen=True, slots=True)
class KeySampleArguments:
    """What `KEY_SAMPLE` is asked about."""

    name: str
    """Of the table."""
    account: str = ""
    """Empty: the only one."""
    partition: str = ""
    """The partition whose first row is asked about."""


KEY_SAMPLE = Command("key-sample", KeySampleArguments)
"""Has one item: the `KeySample` of a table."""
