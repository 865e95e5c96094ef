"""Stored access policies of a table, a queue or a container, and the document that has them."""

from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from lazulite.table.model.edm import format_datetime7, parse_datetime

POLICIES_MAX = 5


class Policy(NamedTuple):
    """A stored access policy. None: a token that names it must state this."""

    start: int | None = None
    """In ticks."""
    expiry: int | None = None
    """In ticks."""
    permission: str | None = None


Policies = Mapping[str, Policy]
"""By their names."""


def read_policies(root: ET.Element) -> dict[str, Policy]:
    """Read the document of Get Table ACL and its like."""
    policies: dict[str, Policy] = {}
    for each in root.iterfind("SignedIdentifier"):
        start, expiry = (each.findtext(f"AccessPolicy/{name}") for name in ("Start", "Expiry"))
        permission = each.findtext("AccessPolicy/Permission")
        policies[each.findtext("Id") or ""] = Policy(
            parse_datetime(start) if start else None,
            parse_datetime(expiry) if expiry else None,
            permission or None,
        )
    return policies


def write_policies(policies: Policies) -> bytes:
    """Write the document of Set Table ACL and its like."""
    parts = []
    for name, policy in policies.items():
        fields = {
            "Start": None if policy.start is None else format_datetime7(policy.start),
            "Expiry": None if policy.expiry is None else format_datetime7(policy.expiry),
            "Permission": policy.permission,
        }
        inner = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in fields.items() if text)
        parts.append(
            f"<SignedIdentifier><Id>{escape(name)}</Id><AccessPolicy>{inner}</AccessPolicy></SignedIdentifier>"
        )
    return f'<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>{"".join(parts)}</SignedIdentifiers>'.encode()


def metadata_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata that the headers of a response have, by name in lower case."""
    return {name[len(_META) :]: value for name, value in headers.items() if name.startswith(_META)}


def metadata_headers(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that sets metadata."""
    return {f"{_META}{name}": value for name, value in metadata.items()}


def is_same_metadata(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Tell whether two sets of metadata are equal; names have no case."""
    return {name.lower(): text for name, text in first.items()} == {name.lower(): text for name, text in second.items()}


_META = "x-ms-meta-"
