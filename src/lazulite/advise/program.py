"""The Python program that gives a table other keys: definitions of `lazulite-patterns`, and the migration by them.

Invariant: names of a workload are in the program as literals of Python, or as identifiers made of them. No text of a
client is code.
"""

from collections.abc import Iterator, Sequence
from keyword import iskeyword
from typing import Final

from lazulite.advise.candidate import Candidate
from lazulite.advise.layout import Form, Part, Parts, described, prefix_of
from lazulite.advise.workload import Workload

_HEAD: Final = '''"""Give the entities of a table other keys: {keys}

Made by `lazulite advise`. It needs the packages lazulite-patterns and azure-data-tables.

    export STORAGE_CONNECTION_STRING=…
    python rekey.py OLD NEW            # a dry run, which reads OLD and says what would be written
    python rekey.py OLD NEW --write    # writes NEW; run it again if it is interrupted

OLD stays as it is. No program may write to it meanwhile: `Move` of lazulite-patterns is for a table in use.

The queries then are:

{queries}
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from uuid import NAMESPACE_OID, UUID, uuid5
from zlib import crc32

from azure.data.tables import TableClient
from lazulite_patterns import Bag, FileCheckpoint, Key, Table
from lazulite_patterns import {components}
from lazulite_patterns.bulk import load

Entity = Mapping[str, object]

'''
_TAIL: Final = '''

def value(entity: Entity, name: str) -> object:
    """Return the value of a property. Raises `KeyError` if the entity lacks it."""
    found = entity[name]
    return getattr(found, "value", found)  # An Int64 is a pair of its value and its type.


def new_id(entity: Entity) -> UUID:
    """Return an id that is the same in each run."""
    return uuid5(NAMESPACE_OID, f"{entity['PartitionKey']}\\0{entity['RowKey']}")


def rekeyed(entities: Iterator[Entity], missing: Counter[str]) -> Iterator[Bag]:
    """Yield the entities with their new keys; count the others, which lack a property or a value for it."""
    for entity in entities:
        try:
            keys = list(keys_of(entity))
        except KeyError as error:
            missing[f"without the property {error.args[0]}"] += 1
        except (TypeError, ValueError, AttributeError) as error:
            missing[f"whose keys cannot be made: {error}"] += 1
        else:
            for partition_key, row_key in keys:
                yield Bag({**entity, "PartitionKey": partition_key, "RowKey": row_key})


def dry_run(rows: Iterator[Bag]) -> int:
    """Print what would be written, and return the number of rows whose keys another one has, too."""
    partitions: Counter[str] = Counter()
    seen: set[int] = set()
    twice = 0
    for row in rows:
        key = hash((row["PartitionKey"], row["RowKey"]))
        twice += key in seen
        seen.add(key)
        if len(seen) <= 3:
            print(f"such as PartitionKey {row['PartitionKey']!r}, RowKey {row['RowKey']!r}")
        partitions[str(row["PartitionKey"])] += 1
    print(f"{len(seen)} rows in {len(partitions)} partitions; the largest has {max(partitions.values(), default=0)}")
    if twice:
        print(f"{twice} rows have the keys of another one, and would replace it")
    return twice


def main(old: str, new: str, *, write: bool) -> int:
    """Give the entities of a table other keys, in a new one; only count them, unless `write`."""
    connection_string = os.environ["STORAGE_CONNECTION_STRING"]
    missing: Counter[str] = Counter()
    with TableClient.from_connection_string(connection_string, old) as source:
        rows = rekeyed(source.list_entities(), missing)
        if write:
            target = Table.open(connection_string, Bag, table=new)
            report = load(target, rows, checkpoint=FileCheckpoint(Path(f"{new}.checkpoint.json")))
            print(f"{report.progress.rows_done} rows written")
            for failure in islice(report.failures, 10):
                print(f"row {failure.number}: {failure.reason}")
            bad = len(report.failures)
        else:
            bad = dry_run(rows)
    for reason, count in missing.most_common(10):
        print(f"{count} entities {reason}")
    return 1 if bad or missing else 0


if __name__ == "__main__":
    arguments = [each for each in sys.argv[1:] if each != "--write"]
    if len(arguments) != 2:
        sys.exit("usage: python rekey.py OLD NEW [--write]")
    sys.exit(main(*arguments, write="--write" in sys.argv))
'''
_COMPONENTS: Final = {
    ("text", Form.PLAIN): ("str", "text()"),
    ("time", Form.PLAIN): ("datetime", "ticks()"),
    ("time", Form.REVERSED): ("datetime", "reverse_ticks()"),
    ("integer", Form.PLAIN): ("int", "integer(19, signed=True)"),
    ("integer", Form.REVERSED): ("int", "integer(19, signed=True, reverse=True)"),
    ("guid", Form.PLAIN): ("UUID", "uuid()"),
}
"""Type and form of a part -> the type in Python, and the component."""
_RESERVED: Final = frozenset(
    {"encode", "decode", "layout", "prefix", "between", "buckets", "guide_style", "starting_with"}
    | {"constant", "bucket", "new_id"}
)
"""What a field of a key cannot be called."""


def program(candidate: Candidate) -> str:
    """Return the program for a choice of keys."""
    workload, layout = candidate.workload, candidate.layout
    rows = list(_rows(candidate))
    classes = [_class_lines(workload, "NewPartition", layout.partition, "all")]
    classes += [_class_lines(workload, name, parts, constant) for name, parts, constant in rows]
    body = "\n\n\n".join("\n".join(lines) for lines in classes)
    names = sorted({each for each in _COMPONENT_NAMES if f"= {each}(" in body})
    uses_time = "datetime = " in body
    head = _HEAD.format(
        keys=_plain(described(layout, workload.kinds)),
        queries="\n".join(f"- {_plain(line)}" for line in _query_lines(candidate)),
        components=", ".join(names),
    )
    if uses_time:
        head = head.replace("from itertools", "from datetime import datetime\nfrom itertools")
    return f"{head}\n{body}\n\n\n" + "\n".join(_keys_lines(candidate, rows)) + _TAIL


_COMPONENT_NAMES: Final = ("integer", "literal", "reverse_ticks", "text", "ticks", "uuid")


def _rows(candidate: Candidate) -> Iterator[tuple[str, Parts, str]]:
    """Yield the class of each RowKey, its parts and its constant."""
    layout, kinds = candidate.layout, candidate.workload.kinds
    plain = tuple(each for each in layout.row if each.form is not Form.KIND)
    if kinds:
        for kind, names in kinds.items():
            parts = tuple(each for each in plain if not each.is_value or each.name in names)
            yield _class_name(kind), parts, kind
    elif layout.copies:
        for parts in layout.rows:
            constant = prefix_of(parts).removesuffix("_")
            yield _class_name(constant), parts, constant
    else:
        yield "NewRow", plain, "" if plain else "row"


def _class_lines(workload: Workload, name: str, parts: Parts, constant: str) -> list[str]:
    lines = [f"class {name}(Key):"]
    if constant and not (name == "NewPartition" and parts):
        lines.append(f"    constant: str = literal({constant!r})")
    for part in parts:
        kind, component = _component(workload, part)
        lines.append(f"    {_field(part)}: {kind} = {component}")
    return lines


def _component(workload: Workload, part: Part) -> tuple[str, str]:
    if part.form is Form.BUCKET:
        return "int", f"integer({len(str(part.count - 1))})"
    if part.form is Form.ID:
        return "UUID", "uuid()"
    return _COMPONENTS.get((workload.about(part.name).type, part.form), ("str", "text()"))


def _field(part: Part) -> str:
    if part.form is Form.BUCKET:
        return "bucket"
    return "new_id" if part.form is Form.ID else _identifier(part.name)


def _identifier(name: str) -> str:
    """Return the identifier of a property: its name, if that can be one. No two names have the same."""
    if name.isascii() and name.isidentifier() and not iskeyword(name) and name not in _RESERVED and name[0] != "_":
        return name
    return f"p_{name.encode('utf-8', 'surrogatepass').hex()}"


def _class_name(name: str) -> str:
    return f"{_identifier(name)[:1].upper()}{_identifier(name)[1:]}Row"


def _value(part: Part) -> str:
    return "new_id(entity)" if part.form is Form.ID else f"value(entity, {part.name!r})"


def _call(name: str, parts: Parts, bucket: str = "") -> str:
    given = (f"{_field(each)}={bucket if each.form is Form.BUCKET else _value(each)}" for each in parts)
    return f"{name}({', '.join(given)}).encode()"


def _keys_lines(candidate: Candidate, rows: Sequence[tuple[str, Parts, str]]) -> Iterator[str]:
    """Yield the function that makes the keys of an entity."""
    layout, kinds = candidate.layout, candidate.workload.kinds
    bucket = layout.bucket
    hashed = "row_key" if bucket is None or not bucket.name else f"str({_value(Part(Form.PLAIN, bucket.name))})"
    number = "" if bucket is None else f"crc32({hashed}.encode()) % {bucket.count}"
    partition = _call("NewPartition", layout.partition, number)
    if bucket is not None and not bucket.name:
        yield "# The bucket is a hash of the RowKey, so that each run writes the same keys. New entities may take any."
    yield "def keys_of(entity: Entity) -> Iterator[tuple[str, str]]:"
    yield '    """Yield the new keys of an entity, one for each row. Raises `KeyError` if it lacks a property."""'
    if kinds:
        yield from _kind_branches(rows)
        yield f"    yield {partition}, row_key"
        return
    for place, (name, parts, _) in enumerate(rows):
        yield f"    row_key = {_call(name, parts)}"
        if not place:
            yield f"    partition_key = {partition}"
        yield "    yield partition_key, row_key"


def _kind_branches(rows: Sequence[tuple[str, Parts, str]]) -> Iterator[str]:
    """Yield the lines that tell the kind of an entity by the properties that it has; the most come first."""
    yield "    # The kind of an entity is told by the properties that it has. Change this if yours differ."
    ordered = sorted(rows, key=lambda row: -len(row[1]))
    for place, (name, parts, _) in enumerate(ordered):
        has_all = " and ".join(f"{each.name!r} in entity" for each in parts if each.is_value)
        yield f"    {'elif' if place else 'if'} {has_all}:" if has_all else "    else:" if place else "    if True:"
        yield f"        row_key = {_call(name, parts)}"
        if not has_all:
            return  # Every entity has what the last kind needs.
    yield "    else:"
    yield f"        raise KeyError({ordered[-1][1][-1].name!r})"


def _query_lines(candidate: Candidate) -> Iterator[str]:
    for query, each in zip(candidate.workload.queries, candidate.accesses, strict=True):
        buckets = f" in each of {each.requests} buckets" if each.requests > 1 else ""
        yield f"{query.name}: {each.each if each.requests > 1 else each.kind}{buckets}"


def _plain(text: str) -> str:
    """Return a text for a docstring: printable, in one line, without quotes and backslashes."""
    return "".join(each for each in " ".join(text.split()) if each.isprintable() and each not in '"\\')
