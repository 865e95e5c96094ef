"""Copies of fields along links, in one partition: each write is one transaction with all rows that it concerns.

- A holder is written with the fields of its target, and the target's ETag is checked by a merge of nothing.
- A target is written with all of its holders, each If-Match the ETag that was read.
- A target that has holders is not deleted, and a holder of an absent target is not written.

The merge of nothing changes the target's ETag. So a holder and its target are never written at the same time, and a
writer of the target that read no such holder begins again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Found, Kind, Operation, Page, Properties, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.errors import EntityValueError, SchemaError
from lazulite_patterns.entities.fields import get
from lazulite_patterns.entities.registry import schema_of
from lazulite_patterns.entities.schema import TYPE
from lazulite_patterns.filters import Compare, Filter, in_partition
from lazulite_patterns.outcomes.errors import Absent, Exists
from lazulite_patterns.outcomes.retries import begin, read
from lazulite_patterns.outcomes.ring import WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.shapes.errors import Referred
from lazulite_patterns.shapes.links import Copied, Ref
from lazulite_patterns.shapes.protocols.groups import OPERATIONS_MAX, again
from lazulite_patterns.table.session import Session, key_of

E = TypeVar("E")
AnyCopied = Copied[Any, Any]


@dataclass(frozen=True)
class CopiesProtocol(Generic[E]):
    """Makes the protocols of `Copies`."""

    session: Session[E]
    copied: tuple[AnyCopied, ...]

    def insert(self, entity: E) -> Protocol[None]:
        """Write an entity that must be absent."""
        properties = self.session.encode(entity)

        def insert() -> Protocol[bool]:
            yield from self._write(Planned(Operation(Kind.INSERT, key_of(properties), properties)), entity, None)
            return True

        yield from again(insert, 8, final=(Exists, Absent))

    def update(self, key: E | EntityKey, change: Callable[[E], E], attempts: int = 8) -> Protocol[None]:
        """Read an entity, change it, and write it with its copies."""
        place = self.session.key(key)

        def update() -> Protocol[bool]:
            base = yield from self.session.stored(place)
            if base is None:
                return False
            changed = change(self.session.decode(base))
            planned = self.session.replacing(changed, base)
            if planned.operation.key != place:
                raise ValueError(f"{place}: an update cannot change the keys")
            yield from self._write(planned, changed, base)
            return True

        if not (yield from again(update, attempts)):
            raise Absent(f"{place} is absent")

    def delete(self, key: E | EntityKey, attempts: int = 8) -> Protocol[bool]:
        """Delete an entity; False if it is absent."""
        place = self.session.key(key)

        def delete() -> Protocol[bool]:
            base = yield from self.session.stored(place)
            if base is None:
                return False
            entity = self.session.decode(base)
            for each in self._copied_from(entity):
                holders = yield from self.holders(each.ref, entity, place)
                if holders:
                    raise Referred(f"{holders[0].key} refers to {place}")
            operation = Operation(Kind.DELETE, place, etag=base.etag)
            yield from write(self.session.name, [Planned(operation, WriteIds.of(base.properties))], self.session.policy)
            return True

        return (yield from again(delete, attempts, final=(Referred,)))

    def holders(self, ref: Ref[Any, Any], target: object, key: EntityKey) -> Protocol[list[Stored]]:
        """Read the holders of a target."""
        schema = schema_of(ref.holder)
        place: Filter = in_partition(key.partition_key) & Compare(TYPE, "eq", schema.type_name)
        stored = {each.field.name for each in schema.shape.properties}
        for name, field in ref.fields.items():
            if field in stored:
                for found, value in schema.partial({field: get(target, name)}).items():
                    place = place & Compare(found, "eq", value)
        attempts = yield from begin(self.session.policy)
        rows: list[Stored] = []
        page: Found | None = None
        while page is None or page.continuation is not None:
            effect = Page(self.session.name, place, continuation=page and page.continuation)
            page = yield from read(effect, attempts)
            rows += [each for each in page.entities if ref.key(schema.decode(each)) == key]
        return rows

    def target(self, ref: Ref[Any, Any], holder: object, key: EntityKey) -> Protocol[Stored | None]:
        """Read the target of a holder; None if it has none.

        Raises:
            Absent: the target is absent.
            EntityValueError: it is in another partition.
        """
        place = ref.key(holder)
        if place is None:
            return None
        if place.partition_key != key.partition_key:
            raise EntityValueError(f"{key}: {place} is in another partition; copies are kept within one")
        found = yield from self.session.stored(place)
        if found is None:
            raise Absent(f"{place} is absent, and {key} refers to it")
        return found

    def _write(self, planned: Planned, entity: E, base: Stored | None) -> Protocol[None]:
        """Write an entity with what its copies and its holders need."""
        key = planned.operation.key
        properties = dict(planned.operation.properties)
        others: dict[EntityKey, Planned] = {}
        for each in self.copied:
            if type(entity) is each.ref.holder:
                target = yield from self.target(each.ref, entity, key)
                own = target is not None and target.key == key
                fill(properties, each, properties if own else None if target is None else target.properties)
                if target is not None and not own:
                    touch = Operation(Kind.MERGE, target.key, {}, target.etag)
                    others.setdefault(target.key, Planned(touch, WriteIds.of(target.properties)))
        for each in self._copied_from(entity) if base is not None else ():
            for row in (yield from self.holders(each.ref, entity, key)):
                if row.key != key:
                    others[row.key] = self._filled(others.get(row.key), row, each, properties)
        self._check(key, properties, others)
        whole = Planned(Operation(planned.operation.kind, key, properties, planned.operation.etag), planned.base)
        yield from write(self.session.name, [whole, *others.values()], self.session.policy)

    def _filled(self, known: Planned | None, row: Stored, copied: AnyCopied, source: Properties) -> Planned:
        """Return the replacement of a holder, with what another link changes already."""
        replacing = known is not None and known.operation.kind is Kind.REPLACE
        planned = known if known is not None and replacing else self.session.replacing(self.session.decode(row), row)
        properties = dict(planned.operation.properties)
        fill(properties, copied, source)
        return Planned(Operation(Kind.REPLACE, row.key, properties, row.etag), WriteIds.of(row.properties))

    def _check(self, key: EntityKey, properties: Properties, others: Mapping[EntityKey, Planned]) -> None:
        if len(others) >= OPERATIONS_MAX:
            raise EntityValueError(f"{key}: {len(others)} rows have copies, {OPERATIONS_MAX - 1} are possible")
        limits.check(str(key), properties)
        for each in others.values():
            if each.operation.kind is Kind.REPLACE:
                limits.check(str(each.operation.key), each.operation.properties)

    def _copied_from(self, entity: E) -> Sequence[AnyCopied]:
        return [each for each in self.copied if type(entity) is each.ref.target]


def fill(properties: dict[str, object], copied: AnyCopied, source: Properties | None) -> None:
    """Put copies into the properties of a holder; without a source there are none."""
    for mine, its in copied.properties.items():
        value = None if source is None else source.get(its)
        if value is None:
            properties.pop(mine, None)
        else:
            properties[mine] = value


def check_declared(kinds: object, copied: Sequence[AnyCopied]) -> None:
    """Reject copies of copies, and links of classes that the table does not have.

    Raises:
        SchemaError: a declaration is wrong.
    """
    classes = get_args(kinds) or (kinds,)
    originals = {(each.ref.target, its) for each in copied for its in each.properties.values()}
    for each in copied:
        if each.ref.holder not in classes or each.ref.target not in classes:
            raise SchemaError(f"the table has not both {each.ref.holder.__name__} and {each.ref.target.__name__}")
        for mine in each.properties:
            if (each.ref.holder, mine) in originals:
                raise SchemaError(f"{each.ref.holder.__name__}.{mine}: a copy of a copy")
            if sum(other.ref.holder is each.ref.holder and mine in other.properties for other in copied) > 1:
                raise SchemaError(f"{each.ref.holder.__name__}.{mine}: a copy of two fields")
