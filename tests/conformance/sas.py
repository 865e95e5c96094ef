"""Shared access signatures: the query strings of reference §14.2 and §14.3, made from a table's worth of fields.

Invariant: a field enters the string to sign exactly as it stands in the query, decoded.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from .signing import Endpoint, signature

SAS_VERSION = "2019-02-02"
WITH_IP_AND_PROTOCOL = "2015-04-05"
WITH_SERVICE_PREFIX = "2015-02-21"
WITH_ENCRYPTION_SCOPE = "2020-12-06"

TABLE_LINES = ("sp", "st", "se", "R", "si", "sip", "spr", "sv", "spk", "srk", "epk", "erk")
TABLE_LINES_BEFORE_IP = tuple(line for line in TABLE_LINES if line not in {"sip", "spr"})
ACCOUNT_LINES = ("account", "sp", "ss", "srt", "st", "se", "sip", "spr", "sv")

Fields = Mapping[str, str | None]
"""SAS parameters by name; None takes a default away."""


def moment(minutes: float = 0) -> str:
    """A time so many minutes from now, in the form of `st` and `se`."""
    return (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def table_sas(endpoint: Endpoint, table: str, fields: Fields) -> str:
    """A service SAS on one table as query text; permissions, expiry and version have defaults."""
    values = _merge({"sv": SAS_VERSION, "se": moment(60), "sp": "raud", "tn": table}, fields)
    version = values.get("sv", "")
    prefix = "/table" if version >= WITH_SERVICE_PREFIX else ""
    resource = {"R": f"{prefix}/{endpoint.account}/{table.lower()}"}
    lines = TABLE_LINES if version >= WITH_IP_AND_PROTOCOL else TABLE_LINES_BEFORE_IP
    text = "\n".join((values | resource).get(line, "") for line in lines)
    return query_text(values | {"sig": signature(endpoint.key, text)})


def account_sas(endpoint: Endpoint, fields: Fields) -> str:
    """An account SAS as query text; by default everything on tables for an hour."""
    defaults = {"sv": SAS_VERSION, "ss": "t", "srt": "sco", "sp": "rwdlacu", "se": moment(60)}
    values = _merge(defaults, fields)
    lines = ACCOUNT_LINES + (("ses",) if values.get("sv", "") >= WITH_ENCRYPTION_SCOPE else ())
    text = "".join((values | {"account": endpoint.account}).get(line, "") + "\n" for line in lines)
    return query_text(values | {"sig": signature(endpoint.key, text)})


def query_text(values: Mapping[str, str]) -> str:
    """`name=value` pairs, values percent-encoded."""
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in values.items())


def _merge(defaults: Mapping[str, str], fields: Fields) -> dict[str, str]:
    return {name: value for name, value in {**defaults, **fields}.items() if value is not None}
