"""The credentials of the Table service: what clients sign (reference §13), and the SAS of one table (§14.2, §14.4).

Invariant: the key range of a SAS is one range of (partition, row) tuples, ends included, as the service has it; a bound
on rows alone does not exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lazulite.auth.accounts.account import Account
from lazulite.auth.authenticator import ServiceCredentials
from lazulite.auth.sas import MalformedSasError, ServiceSas, read_values, sign_service_sas
from lazulite.auth.shared_key import request_date
from lazulite.engine.contract import KeyRange
from lazulite.engine.ordinal import ordinal
from lazulite.protocol.message import Request
from lazulite.table.roles import TABLE_BEARER

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
TABLE_SAS_PARAMETERS = tuple(_NAMES)
"""Every query parameter that takes part in a table SAS."""


def table_string_to_sign(scheme: str, request: Request, account: str, path: str, comp: str | None) -> str:
    """Return the string-to-sign of a request: `Canonicalize` for tables.

    Args:
        scheme: `SharedKey` or `SharedKeyLite`.
        request: for its method and headers.
        account: name without `-secondary`.
        path: of the URL, as the client spelled it when signing.
        comp: value of the query parameter, the only one that is signed.
    """
    headers = request.headers
    resource = f"/{account}{path}" if comp is None else f"/{account}{path}?comp={comp}"
    moment = request_date(request)
    if scheme == "SharedKeyLite":
        return f"{moment}\n{resource}"
    md5, media_type = headers.get("content-md5", ""), headers.get("content-type", "")
    return f"{request.method}\n{md5}\n{media_type}\n{moment}\n{resource}"


@dataclass(frozen=True, slots=True)
class TableScope:
    """The rows that a table SAS reaches."""

    table: str
    """The name of the table in lower case."""
    key_range: KeyRange | None = None
    """The rows that the token grants access to. None: all of the table."""

    def covers(self, resource: str) -> bool:
        """Tell whether a table, named in any case, is the one that the token grants access to."""
        return self.table == resource.lower()

    def allows_key(self, partition: str, row: str) -> bool:
        """Tell whether a row is within the key range."""
        if self.key_range is None:
            return True
        lower, upper = self.key_range
        key = (ordinal(partition), ordinal(row))
        if key < (ordinal(lower[0]), ordinal(lower[1])):
            return False
        return upper is None or key < (ordinal(upper[0]), ordinal(upper[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSas(ServiceSas):
    """Hold the values of a table SAS; the letters of its `permission` are `raud`: read, add, update, delete."""

    table: str
    """In any case; signed in lower case."""
    start_partition: str = ""
    start_row: str = ""
    end_partition: str = ""
    end_row: str = ""

    @property
    def policy_resource(self) -> str:
        """Return the name of the table in lower case."""
        return self.table.lower()

    def scope(self) -> TableScope:
        """Return the rows that the token grants access to."""
        return TableScope(self.table.lower(), self._key_range())

    def string_to_sign(self, account: str) -> str:
        """Return the string that the key of an account signs, given the account's name."""
        key_range = [self.start_partition, self.start_row, self.end_partition, self.end_row]
        return "\n".join([*self.signed_lines("table", account), *key_range])

    def _key_range(self) -> KeyRange | None:
        if not (self.start_partition or self.start_row or self.end_partition or self.end_row):
            return None
        upper = None
        if self.end_row:
            upper = (self.end_partition, self.end_row + "\0")
        elif self.end_partition:
            upper = (self.end_partition + "\0", "")
        return KeyRange((self.start_partition, self.start_row), upper)


def parse_table_sas(parameters: Mapping[str, str]) -> TableSas:
    """Read a token from the query parameters of a request.

    Raises:
        MalformedSasError: no table, a row bound without its partition bound, or a value that would make the
            string-to-sign ambiguous.
    """
    if not parameters.get("tn"):
        raise MalformedSasError("a table SAS needs tn")
    if (parameters.get("srk") and "spk" not in parameters) or (parameters.get("erk") and "epk" not in parameters):
        raise MalformedSasError("srk needs spk, and erk needs epk")
    return TableSas(**({"version": ""} | read_values(parameters, _NAMES)))


def sign_table_sas(account: Account, sas: TableSas, key: int = 1) -> str:
    """Return the query string of a signed token. Arguments and errors are those of `sign_service_sas`."""
    values = {name: getattr(sas, attribute) for name, attribute in _NAMES.items()}
    return sign_service_sas(account, key, sas, values, parse_table_sas)


TABLE_CREDENTIALS = ServiceCredentials(
    "t", table_string_to_sign, "tn", TABLE_SAS_PARAMETERS, parse_table_sas, TABLE_BEARER
)
