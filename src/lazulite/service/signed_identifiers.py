"""The `SignedIdentifiers` document: a table's (later a queue's or container's) stored access policies.

Source: Set Table ACL of the REST reference; the order of the elements and the 7 digits are recorded.
"""

from collections.abc import Iterable

from lazulite.auth.sas import format_sas_date, parse_sas_date
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.xml import document as xml
from lazulite.records.catalog import StoredAccessPolicy

MAX_POLICIES = 5
MAX_ID_LENGTH = 64
"""In UTF-16 code units."""
TABLE_PERMISSIONS = "raud"


def read_signed_identifiers(body: bytes, permissions: str = TABLE_PERMISSIONS) -> list[StoredAccessPolicy]:
    """Read the document; an empty body is an empty list, which clears the ACL.

    An empty `Start`, `Expiry` or `Permission` is as good as none. The rejection of a sixth policy has no details, as
    recorded of tables (§8.6); of queues and containers that is *unverified*.

    Args:
        body: the request's body.
        permissions: the letters that the resource knows, in the order in which they must come.

    Raises:
        ServiceError: `InvalidXmlDocument` (also for more than five policies, for an id that is missing, too long or
            used twice, and for a time or permission), `RequestBodyTooLarge`.
    """
    if not body.strip():
        return []
    root = xml.parse(body)
    if root.name != "SignedIdentifiers":
        raise xml.invalid_document("The root must be SignedIdentifiers.", root.position)
    nodes = xml.only_children(root)
    if len(nodes) > MAX_POLICIES:
        raise ServiceError("InvalidXmlDocument")
    policies = [_read_policy(node, permissions) for node in nodes]
    if len({policy.id for policy in policies}) < len(policies):
        raise xml.invalid_document("The ids of signed identifiers must differ.", root.position)
    return policies


def _read_policy(node: xml.Node, permissions: str) -> StoredAccessPolicy:
    if node.name != "SignedIdentifier":
        raise xml.invalid_document("Only SignedIdentifier is expected here.", node.position)
    parts = xml.fields(node, (), ("Id", "AccessPolicy"))
    id_ = xml.text_of(parts["Id"]) if "Id" in parts else ""
    if not 0 < len(id_.encode("utf-16-le")) // 2 <= MAX_ID_LENGTH:
        raise xml.invalid_document(f"An id has 1 to {MAX_ID_LENGTH} characters.", node.position)
    if "AccessPolicy" not in parts:
        return StoredAccessPolicy(id_)
    terms = xml.fields(parts["AccessPolicy"], (), ("Start", "Expiry", "Permission"))
    permission = terms.get("Permission")
    return StoredAccessPolicy(
        id_,
        _read_time(terms.get("Start")),
        _read_time(terms.get("Expiry")),
        None if permission is None else _read_permission(permission, permissions),
    )


def _read_time(node: xml.Node | None) -> int | None:
    text = "" if node is None else xml.text_of(node)
    if node is None or not text:
        return None
    try:
        if "T" in text and not text.endswith("Z"):
            raise ValueError("an offset, which only a SAS may have")
        return parse_sas_date(text)
    except ValueError:
        raise xml.invalid_document(f"{node.name} is not a time in UTC.", node.position) from None


def _read_permission(node: xml.Node, permissions: str) -> str | None:
    text = xml.text_of(node)
    if text != "".join(letter for letter in permissions if letter in text):
        raise xml.invalid_document(f"Permission takes the letters {permissions}, in that order.", node.position)
    return text or None


def write_signed_identifiers(policies: Iterable[StoredAccessPolicy]) -> bytes:
    """Return the document; terms that a policy lacks are left out, and the policy itself if it has none (recorded)."""
    return xml.document(xml.element("SignedIdentifiers", *map(_policy, policies)))


def _policy(policy: StoredAccessPolicy) -> str:
    terms = (
        ("Start", None if policy.start is None else format_time(policy.start)),
        ("Expiry", None if policy.expiry is None else format_time(policy.expiry)),
        ("Permission", policy.permission),
    )
    leaves = [xml.leaf(name, text) for name, text in terms if text is not None]
    content = [xml.element("AccessPolicy", *leaves)] if leaves else []
    return xml.element("SignedIdentifier", xml.leaf("Id", policy.id), *content)


def format_time(ticks: int) -> str:
    """Return an instant as policies show it: `2021-06-08T02:05:09.0000000Z`.

    Raises:
        ValueError, OverflowError: before year 1 or after year 9999.
    """
    return f"{format_sas_date(ticks)[:-1]}.{ticks % TICKS_PER_SECOND:07}Z"
