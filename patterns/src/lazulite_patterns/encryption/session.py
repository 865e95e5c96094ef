"""A session whose writes encrypt and whose reads decrypt; and rows that are encrypted again."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple, TypeVar

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import Gather
from lazulite_patterns.effects.tables import Continuation, Kind, Operation, Page, Read, Stored
from lazulite_patterns.encryption.checks import UndecryptableCheck
from lazulite_patterns.encryption.ciphers import Ciphers
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.conditions import QueryError
from lazulite_patterns.entities.errors import EntityFormatError, SchemaError
from lazulite_patterns.filters import Both, Compare, Filter, Not
from lazulite_patterns.indexes.check import IndexCheck
from lazulite_patterns.outcomes.errors import Absent, Conflict
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.outcomes.ring import WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import ALONE, Joined, Written, write
from lazulite_patterns.table.indexed import IndexedSession
from lazulite_patterns.table.plan import Plan
from lazulite_patterns.table.session import Session

E = TypeVar("E")


@dataclass(frozen=True)
class EncryptedSession(Session[E]):
    """Makes the protocols of a table with encrypted properties."""

    cipher: Ciphers = field(kw_only=True)

    def checks(self) -> Sequence[Check]:
        """Return what an audit examines: properties that cannot be decrypted."""
        return [UndecryptableCheck(self.name, self.cipher)]

    def write(
        self, planned: Sequence[Planned], known: Sequence[Stored] = (), joined: Joined = ALONE
    ) -> Protocol[Written]:
        """Write entities of one partition, encrypted."""
        return super().write([self._encrypted(each) for each in planned], known, joined)

    def decode(self, stored: Stored) -> E:
        """Return the entity of a row, decrypted."""
        return super().decode(stored._replace(properties=self.cipher.decrypt(stored.key, stored.properties)))

    def _encrypted(self, planned: Planned) -> Planned:
        operation = planned.operation
        if operation.kind is Kind.DELETE:
            return planned
        properties = self.cipher.encrypt(operation.key, operation.properties, operation.kind)
        keys = {"PartitionKey": operation.key.partition_key, "RowKey": operation.key.row_key}
        limits.check(f"{operation.key}", {**properties, **keys})
        return planned._replace(operation=replace(operation, properties=properties))


@dataclass(frozen=True)
class EncryptedIndexedSession(EncryptedSession[E], IndexedSession[E]):
    """Makes the protocols of a table with encrypted properties, and with indexes of others."""

    def checks(self) -> Sequence[Check]:
        """Return what an audit examines: properties that cannot be decrypted, entities and their entries."""
        return [*super().checks(), IndexCheck(self.pointers, self.indexes)]


def encrypted(session: Session[E], cipher: Ciphers) -> EncryptedSession[E]:
    """Return the session of a table as one that encrypts.

    Raises:
        SchemaError: an index would show the values of an encrypted property, or no class has a property to encrypt.
    """
    cipher = cipher.of(session.name)
    if absent := session.kinds.absent(cipher.names):
        raise SchemaError(f"{min(absent)}: no class of the table has such a property, so nothing would be encrypted")
    kept = {each.name: getattr(session, each.name) for each in fields(session)}
    if not isinstance(session, IndexedSession):
        return EncryptedSession(**kept, cipher=cipher)
    for each in session.indexes:
        if shown := each.properties & cipher.names:
            raise SchemaError(
                f"index {each.index.name}: its entries would show {min(shown)}, which is encrypted. "
                "A blind index finds equal values: Cipher(…, blind=[…])"
            )
    return EncryptedIndexedSession(**kept, cipher=cipher)


def blinded(condition: Filter, cipher: Ciphers) -> Filter:
    """Return a condition as the service can decide it: equality of encrypted properties by their blind indexes.

    Raises:
        QueryError: an encrypted property is compared in another way, has no blind index, or is an alternative: each
            hit is confirmed by all encrypted properties of the query.
    """
    if isinstance(condition, Both):
        if condition.word == "or" and (encrypted := _encrypted_parts(condition, cipher)):
            raise QueryError(f"{encrypted[0].name} is encrypted: it is not joined by |; see `any_of`")
        return replace(condition, left=blinded(condition.left, cipher), right=blinded(condition.right, cipher))
    if isinstance(condition, Not):
        return Not(blinded(condition.inner, cipher))
    if not isinstance(condition, Compare) or condition.name not in cipher.names:
        return condition
    found = cipher.blind(condition.name, condition.value)
    if condition.comparison != "eq" or not found:
        raise QueryError(f"{condition.name} is encrypted: it is found by equal values only, with a blind index")
    ((name, value),) = found.items()
    return Compare(name, "eq", value)


def confirmed(query: Plan, cipher: Ciphers) -> Plan:
    """Return a query as `blinded` does, whose hits are compared again when they are decrypted.

    A blind index says what another program wrote, not what the value is.

    Raises:
        QueryError: as `blinded` does.
    """
    if query.filter is None:
        return query
    wanted = {each.name: cipher.blind(each.name, each.value) for each in _encrypted_parts(query.filter, cipher)}
    found = replace(query, filter=blinded(query.filter, cipher))
    if not wanted:
        return found

    def accepts(row: Stored) -> bool:
        given = {name: row.properties[name] for name in wanted if name in row.properties}
        plain = cipher.decrypt(row.key, given)
        return all(name in plain and cipher.blind(name, plain[name]) == blind for name, blind in wanted.items())

    return replace(found, accepts=accepts, needed=("PartitionKey", "RowKey", *wanted))


def _encrypted_parts(condition: Filter, cipher: Ciphers) -> list[Compare]:
    if isinstance(condition, Both):
        return _encrypted_parts(condition.left, cipher) + _encrypted_parts(condition.right, cipher)
    return [condition] if isinstance(condition, Compare) and condition.name in cipher.names else []


class Reencrypted(NamedTuple):
    """What became of a page of rows, and where the next one begins; None after the last one.

    Attributes:
        changed: rows that were written.
        failures: rows that cannot be decrypted, and why.
    """

    changed: int
    failures: tuple[str, ...]
    continuation: Continuation | None


def reencrypted(
    table: str, old: Ciphers, new: Ciphers, policy: Policy, continuation: Continuation | None
) -> Protocol[Reencrypted]:
    """Encrypt the rows of a page again, but for rows that are as the new cipher writes them."""
    old, new = old.of(table), new.of(table)
    page = yield from read(Page(table, continuation=continuation), (yield from begin(policy)))
    protocols = tuple(_row(table, each, old, new, policy) for each in page.entities)
    found = (yield from perform(Gather(protocols))) if protocols else []
    changed = sum(each is True for each in found)
    return Reencrypted(changed, tuple(each for each in found if isinstance(each, str)), page.continuation)


def _row(table: str, row: Stored, old: Ciphers, new: Ciphers, policy: Policy) -> Protocol[bool | str]:
    """Encrypt a row again, If-Match its ETag, again if another writer was faster; return why it cannot be done."""
    found: Stored | None = row
    while found is not None and not new.is_current(found.properties):
        try:
            plain = old.decrypt(found.key, found.properties)
        except EntityFormatError as error:
            return str(error)
        properties = new.encrypt(found.key, plain, Kind.REPLACE)
        operation = Operation(Kind.REPLACE, found.key, properties, found.etag)
        try:
            yield from write(table, [Planned(operation, WriteIds.of(found.properties))], policy)
        except Absent:
            return False
        except Conflict:
            found = yield from read(Read(table, row.key), (yield from begin(policy)))
        else:
            return True
    return False
