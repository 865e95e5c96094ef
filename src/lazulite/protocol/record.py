"""What a service notes about a request, for logs, metrics and traces."""

from dataclasses import dataclass


@dataclass(slots=True)
class RequestRecord:
    """The facts of one request that the service learns while it responds.

    Invariant: each text is the service's own, or the name of an account that exists.
    """

    version: str = ""
    """The protocol version that governs the request; "" until it is resolved, or if the stated one is no version."""
    account: str = ""
    """The addressed account; "" if there is none of that name."""
    operation: str = ""
    """The operation's name; "" until the route is known."""
    query_class: str = ""
    """The class of an entity query."""
    rows_scanned: int = 0
    rows_returned: int = 0
