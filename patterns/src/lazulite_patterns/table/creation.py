"""Tables, queues and containers that are created if they are absent."""

from collections.abc import Callable

from azure.core.exceptions import ResourceExistsError

from lazulite_patterns.effects.calls import Call
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.tables import EntityKey, Read
from lazulite_patterns.outcomes.retries import Policy, begin, read

_FORBIDDEN = 403


def is_there(error: ResourceExistsError) -> bool:
    """Tell whether something is not created because it is there, and not because it is being deleted."""
    code = getattr(error, "error_code", None)  # Each SDK sets it, some of them by an Enum.
    return str(getattr(code, "value", code)).endswith("AlreadyExists")


def create(function: Callable[..., object], policy: Policy, table: str | None = None) -> Protocol[None]:
    """Create what is absent. A signature that may not create is fine if the table is there.

    Args:
        function: creates it, and does nothing if it is there. It takes options of the SDK.
        policy: of the requests.
        table: the name of a table, which a signature that may not create is able to look for; None for others.

    Raises:
        Rejected: it is not there and cannot be created.
    """
    attempts = yield from begin(policy)
    try:
        yield from read(Call(function, requests=True), attempts)
    except Rejected as rejected:
        if rejected.status != _FORBIDDEN:
            raise
        if table is not None:
            yield from _look_for(table, policy)


def _look_for(table: str, policy: Policy) -> Protocol[None]:
    """Raise Rejected if a table is absent. A signature may not even tell."""
    try:
        yield from read(Read(table, EntityKey("", "")), (yield from begin(policy)))
    except Rejected as rejected:
        if rejected.status != _FORBIDDEN:
            raise
