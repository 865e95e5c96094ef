"""The ids of snapshots and versions: times with seven digits."""

import re
from datetime import datetime, timedelta

from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{7})Z", re.ASCII)
_YEAR_1601 = datetime(1601, 1, 1)
_SECOND = timedelta(seconds=1)


def read_time(parameter: str, text: str) -> int:
    """Return the time of a snapshot or version in ticks.

    Args:
        parameter: the name of the query parameter.
        text: its value, such as `2019-06-17T23:55:48.8621956Z`.

    Raises:
        ServiceError: `InvalidQueryParameterValue`.
    """
    found = _TIME.fullmatch(text)
    if found is not None:
        try:
            seconds = (datetime.fromisoformat(found[1]) - _YEAR_1601) // _SECOND
        except ValueError:
            seconds = -1
        if seconds >= 0:
            return seconds * TICKS_PER_SECOND + int(found[2])
    details = [("QueryParameterName", parameter), ("QueryParameterValue", text[:64])]
    raise ServiceError("InvalidQueryParameterValue", details=details)


def write_time(ticks: int) -> str:
    """Return the id of a snapshot or version."""
    seconds, rest = divmod(ticks, TICKS_PER_SECOND)
    return f"{(_YEAR_1601 + seconds * _SECOND).isoformat()}.{rest:07}Z"
