"""The rule that names of queues and of containers share. Source: reference §25.1 and §32.1."""

import re

from lazulite.protocol.errors import ServiceError

NAME_MIN = 3
NAME_MAX = 63
WRONG_LENGTH = "The specified resource name length is not within the permissible limits."

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_LOOKED_AT_MAX = 1024
"""Characters of a name that are looked at."""


def check_resource_name(name: str) -> None:
    """Reject a name that no queue and no container can have.

    Raises:
        ServiceError: `InvalidResourceName`, or `OutOfRangeInput` for the length.
    """
    if _NAME.fullmatch(name, 0, _LOOKED_AT_MAX) is None:
        raise ServiceError("InvalidResourceName")
    if not NAME_MIN <= len(name) <= NAME_MAX:
        raise ServiceError("OutOfRangeInput", WRONG_LENGTH)
