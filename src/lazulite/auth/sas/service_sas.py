"""The service SAS of one table: permissions and a key range, perhaps by a stored access policy (reference §14.2).

Invariant: the key range is one range of (partition, row) tuples, ends included, as the service has it; a bound on rows
alone does not exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lazulite.auth.accounts.account import Account
from lazulite.auth.sas.terms import (
    SIGNED_VERSION,
    MalformedSasError,
    Terms,
    check_version,
    is_signed,
    parse_terms,
    read_values,
    signature,
    write_query,
)
from lazulite.auth.stored_policy import StoredAccessPolicy
from lazulite.engine.contract import KeyRange
from lazulite.protocol.version import SAS_SERVICE_PREFIX_SINCE, SAS_TRANSPORT_SINCE

_NAMES = {
    "sv": "version",
    "tn": "table",
    "sp": "permission",
    "st": "start",
    "se": "expiry",
    "si": "policy_id",
    "spk": "start_partition",
    "srk": "start_row",
    "epk": "end_partition",
    "erk": "end_row",
    "sip": "ip",
    "spr": "protocol",
    "sig": "signature",
}
_POLICY_ID_CHARACTERS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSas:
    """The values of a token as they stand in its query, URL-decoded; "" is absent."""

    table: str
    """In any case; signed in lower case."""
    permission: str = ""
    """Of `raud`: read, add, update, delete. Any order is taken (*unverified*: the service may insist on this one)."""
    expiry: str = ""
    start: str = ""
    policy_id: str = ""
    ip: str = ""
    protocol: str = ""
    version: str = SIGNED_VERSION
    start_partition: str = ""
    start_row: str = ""
    end_partition: str = ""
    end_row: str = ""
    signature: str = field(default="", repr=False)

    def terms(self) -> Terms:
        """Check the values and return those that each request is held against.

        `sip` and `spr` of an old token are unsigned: whoever holds it can leave them out, so they are not looked at.

        Raises:
            MalformedSasError: a required value is missing, or one is none of the documented forms.
        """
        check_version(self.version)
        if not self.table:
            raise MalformedSasError("a table SAS needs tn")
        if len(self.policy_id) > _POLICY_ID_CHARACTERS_MAX:
            raise MalformedSasError("si is longer than 64 characters")
        if not self.policy_id and not (self.permission and self.expiry):
            raise MalformedSasError("without si, sp and se are needed")
        if self.version < SAS_TRANSPORT_SINCE:
            return parse_terms(self.start, self.expiry, "", "")
        return parse_terms(self.start, self.expiry, self.ip, self.protocol)

    def key_range(self) -> KeyRange | None:
        """Return the rows within reach, or None for all of the table."""
        if not (self.start_partition or self.start_row or self.end_partition or self.end_row):
            return None
        upper = None
        if self.end_row:
            upper = (self.end_partition, self.end_row + "\0")
        elif self.end_partition:
            upper = (self.end_partition + "\0", "")
        return KeyRange((self.start_partition, self.start_row), upper)

    def string_to_sign(self, account: str, resource_prefix: str) -> str:
        """Return what the account's key signs.

        Args:
            account: its name.
            resource_prefix: `table`.
        """
        resource = f"/{account}/{self.table.lower()}"
        if self.version >= SAS_SERVICE_PREFIX_SINCE:
            resource = f"/{resource_prefix}{resource}"
        lines = [self.permission, self.start, self.expiry, resource, self.policy_id]
        if self.version >= SAS_TRANSPORT_SINCE:
            lines += [self.ip, self.protocol]
        lines += [self.version, self.start_partition, self.start_row, self.end_partition, self.end_row]
        return "\n".join(lines)

    def is_signed_by(self, account: Account, resource_prefix: str) -> bool:
        """Whether the signature is one of the account's."""
        return is_signed(account, self.string_to_sign(account.name, resource_prefix), self.signature)


def apply_policy(sas: ServiceSas, terms: Terms, policy: StoredAccessPolicy) -> tuple[str, Terms]:
    """Return the permission letters and the terms that a token and its stored policy make together.

    Raises:
        MalformedSasError: both say the same thing (*unverified*: documented as an error, never recorded), or neither
            grants a permission or has an expiry.
    """
    if (
        (policy.start is not None and terms.start is not None)
        or (policy.expiry is not None and terms.expiry is not None)
        or (policy.permission and sas.permission)
    ):
        raise MalformedSasError("the token repeats what its stored policy says")
    permission = policy.permission or sas.permission
    start = policy.start if policy.start is not None else terms.start
    expiry = policy.expiry if policy.expiry is not None else terms.expiry
    if not permission or expiry is None:
        raise MalformedSasError("neither the token nor its stored policy has a permission and an expiry")
    return permission, replace(terms, start=start, expiry=expiry)


def parse_service_sas(parameters: Mapping[str, str]) -> ServiceSas:
    """Read a token from a request's query parameters.

    Raises:
        MalformedSasError: a row bound without its partition bound, or a value that could be re-cut.
    """
    if (parameters.get("srk") and "spk" not in parameters) or (parameters.get("erk") and "epk" not in parameters):
        raise MalformedSasError("srk needs spk, and erk needs epk")
    return ServiceSas(**({"table": "", "version": ""} | read_values(parameters, _NAMES)))


def sign_table_sas(account: Account, sas: ServiceSas, key: int = 1) -> str:
    """Return the query string of a signed token.

    Args:
        account: who signs.
        sas: what is granted; its `signature` is not looked at.
        key: which of the account's keys signs, from 1.

    Raises:
        MalformedSasError: the values do not make a token, or it would not sign all of them.
        IndexError: the account has no such key.
    """
    if sas.version < SAS_TRANSPORT_SINCE and (sas.ip or sas.protocol):
        raise MalformedSasError(f"sip and spr need sv {SAS_TRANSPORT_SINCE} or later")
    values = {name: getattr(sas, attribute) for name, attribute in _NAMES.items()}
    parse_service_sas({name: value for name, value in values.items() if value}).terms()
    values["sig"] = signature(account.signers[key - 1], sas.string_to_sign(account.name, "table"))
    return write_query(values)
