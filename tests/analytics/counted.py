"""Requests as metrics count them, and the properties that ask for it."""

from typing import NamedTuple

from lazulite.analytics.metrics import TICKS
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.service.properties import Metrics, RetentionPolicy, ServiceProperties

ACCOUNT = DEVELOPMENT_ACCOUNT.name
MINUTE, HOUR = TICKS["Minute"], TICKS["Hour"]
START = 116_444_736_000_000_000 + 20_000 * 24 * HOUR
"""A midnight: 2024-10-04."""


def asking(*, minute: bool = True, hour: bool = True, apis: bool = True, days: int | None = None) -> ServiceProperties:
    """Return properties that ask for metrics."""
    retention = RetentionPolicy() if days is None else RetentionPolicy(enabled=True, days=days)
    return ServiceProperties(
        minute_metrics=Metrics(minute, apis if minute else None, retention),
        hour_metrics=Metrics(hour, apis if hour else None, retention),
    )


class Counted(NamedTuple):
    """One request."""

    operation: str = "GetBlob"
    authentication: str = "authenticated"
    status: str = "Success"
    http_status: int = 200
    started: int = START
    ended: int = START
    total_ms: float = 3.0
    server_ms: float = 2.0
    request_head_bytes: int = 100
    request_body_bytes: int = 10
    response_head_bytes: int = 200
    response_body_bytes: int = 20
    is_secondary: bool = False
    account: str = ACCOUNT
    service: str = "blob"
    properties: ServiceProperties = asking()
