"""Get User Delegation Key: a key for user delegation SAS, for the bearer of a token.

Source: "Get User Delegation Key" of the REST reference.
"""

from dataclasses import dataclass

from lazulite.auth.delegation.key import DELEGATE, KEY_SECONDS_MAX, KEY_SKEW_SECONDS, DelegationKey
from lazulite.auth.grant import Requirement, either
from lazulite.auth.sas import format_sas_date, parse_sas_date
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import AuthorityError
from lazulite.protocol.message import Response
from lazulite.protocol.xml import document as xml
from lazulite.service.responses import XML_TYPE
from lazulite.service.routing import XML_BODY, AnyCall, Route

_DELEGATED_TID = "DelegatedUserTid"
_TENANT_CHARACTERS_MAX = 256


@dataclass(frozen=True, slots=True)
class UserDelegation:
    """The operation, for one service.

    Args:
        letter: the letter of the service in keys.
        since: the first version that has the operation.
        cross_tenant_since: the first version with `DelegatedUserTid`.
    """

    letter: str
    since: str
    cross_tenant_since: str

    def route(self, kind: object) -> Route[AnyCall]:
        """Return the route; `kind` is the kind of the account's root."""
        return Route(
            kind,
            "POST",
            "service/userdelegationkey",
            "GetUserDelegationKey",
            self._get_key,
            requires=Requirement("s", actions=either(DELEGATE), bearer_only=True),
            body=XML_BODY,
            since=self.since,
        )

    async def _get_key(self, call: AnyCall) -> Response:
        identity, account = call.grant.identity, call.account
        if identity is None or not identity.oid:
            # *Unverified*: the code for a token without a user.
            raise AuthorityError("AuthorizationPermissionMismatch")
        start, expiry, tenant = self._read(call)
        key = DelegationKey(
            oid=identity.oid,
            tid=identity.tid,
            start=format_sas_date(start),
            expiry=format_sas_date(expiry),
            service=self.letter,
            version=call.version,
            delegated_tid=tenant,
        )
        secret = await call.context.delegations.delegate(account, identity, expiry)
        return Response(200, [XML_TYPE], _write(key, key.text(secret, account)))

    def _read(self, call: AnyCall) -> tuple[int, int, str]:
        """Return start, expiry and the tenant of the user that may use a SAS, "" for any.

        Raises:
            ServiceError: `InvalidXmlDocument`, `MissingRequiredXmlNode`, `UnsupportedXmlNode`, `InvalidXmlNodeValue`.
        """
        root = xml.parse(call.request.body)
        if root.name != "KeyInfo":
            raise xml.invalid_document("The root must be KeyInfo.", root.position)
        tenants = (_DELEGATED_TID,) if call.version >= self.cross_tenant_since else ()
        nodes = xml.fields(root, ("Expiry",), ("Start", *tenants), names_code=True)
        now = call.context.clock()
        start = _read_time(nodes["Start"]) if "Start" in nodes else now
        expiry = _read_time(nodes["Expiry"])
        last = KEY_SECONDS_MAX * TICKS_PER_SECOND
        latest = min(start + last, now + last + KEY_SKEW_SECONDS * TICKS_PER_SECOND)
        if not max(start, now) < expiry <= latest:
            raise xml.invalid_value(nodes["Expiry"], "Expiry must be after Start and now, by 7 days at most.")
        tenant = xml.text_of(nodes[_DELEGATED_TID]) if _DELEGATED_TID in nodes else ""
        if len(tenant) > _TENANT_CHARACTERS_MAX or not (tenant.isascii() and tenant.isprintable()):
            raise xml.invalid_value(nodes[_DELEGATED_TID], "DelegatedUserTid is not the id of a tenant.")
        return start, expiry, tenant


def _read_time(node: xml.Node) -> int:
    try:
        ticks = parse_sas_date(xml.text_of(node))
        format_sas_date(ticks)  # An offset can carry the instant out of the calendar.
    except (ValueError, OverflowError):
        raise xml.invalid_value(node, f"{node.name} is not a time.") from None
    return ticks


def _write(key: DelegationKey, value: str) -> bytes:
    leaves = [
        xml.leaf("SignedOid", key.oid),
        xml.leaf("SignedTid", key.tid),
        xml.leaf("SignedStart", key.start),
        xml.leaf("SignedExpiry", key.expiry),
        xml.leaf("SignedService", key.service),
        xml.leaf("SignedVersion", key.version),
    ]
    if key.delegated_tid:
        leaves.append(xml.leaf("SignedDelegatedUserTid", key.delegated_tid))
    return xml.document(xml.element("UserDelegationKey", *leaves, xml.leaf("Value", value)))
