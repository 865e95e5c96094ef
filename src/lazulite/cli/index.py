"""`lazulite index`: declare, build, list, explain, export and drop indexes of a table."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lazulite.app.commands import (
    INDEX_BUILD,
    INDEX_CREATE,
    INDEX_DROP,
    INDEX_EXPLAIN,
    INDEX_EXPORT,
    INDEX_LIST,
    ExplainArguments,
    IndexArguments,
    IndexDeclaration,
    TableArguments,
)
from lazulite.cli.errors import CommandError
from lazulite.cli.index_export import IndexDefinition, patterns_module
from lazulite.cli.store_commands import run_on_store
from lazulite.control.command import ControlError, Json
from lazulite.engine.contract import EngineError
from lazulite.settings.config import ConfigError

Environment = Mapping[str, str]


def run(args: Namespace, environ: Environment) -> int:
    """Run a command on the indexes of a table."""
    try:
        _COMMANDS[args.index_command](args, environ)
    except (ControlError, EngineError, ConfigError) as error:
        raise CommandError(error) from None
    return 0


def _list(args: Namespace, environ: Environment) -> None:
    found: list[Any] = []
    run_on_store(args, environ, INDEX_LIST, TableArguments(args.table, args.account or ""), found.append)
    if args.json:
        _print_json(found)
        return
    for each in found:
        successor = "; its successor" if each["state"] == "ready" else ""
        rows = "" if each["rows"] is None else f"{successor}, {each['rows']:,} rows gone through"
        print(f"{each['name']}: on {', '.join(each['on'])}; scope {each['scope']}; {each['state']}{rows}")


def _create(args: Namespace, environ: Environment) -> None:
    first, *others = args.on
    if len(others) > 1:
        raise CommandError("an index has one property, or 2 different ones", 2)
    of = IndexDeclaration(args.table, args.index, first, "".join(others), args.scope, args.account or "")
    run_on_store(args, environ, INDEX_CREATE, of, _show_rows)
    _report(f"{args.index} is ready")


def _rebuild(args: Namespace, environ: Environment) -> None:
    of = IndexArguments(args.table, args.index, args.account or "", again=True)
    run_on_store(args, environ, INDEX_BUILD, of, _show_rows)
    _report(f"{args.index} is ready")


def _drop(args: Namespace, environ: Environment) -> None:
    run_on_store(args, environ, INDEX_DROP, IndexArguments(args.table, args.index, args.account or ""), lambda _: None)


def _explain(args: Namespace, environ: Environment) -> None:
    found: list[Any] = []
    run_on_store(
        args, environ, INDEX_EXPLAIN, ExplainArguments(args.table, args.filter, args.account or ""), found.append
    )
    if args.json:
        _print_json(found)
        return
    for line in _explained(*found):
        print(line)


def _explained(query: Mapping[str, Any], *indexes: Mapping[str, Any]) -> Iterator[str]:
    uses = " and ".join(query["uses"])
    yield f"{query['class']} in the cloud; here {f'by {uses}' if uses else 'the same'}"
    for each in indexes:
        yield f"{each['index']}: {'used' if each['used'] else 'not used'}: {each['why']}"


def _export(args: Namespace, environ: Environment) -> None:
    found: list[Any] = []
    run_on_store(args, environ, INDEX_EXPORT, TableArguments(args.table, args.account or ""), found.append)
    print(patterns_module(args.table, [IndexDefinition(**each) for each in found]), end="")


_COMMANDS = {
    "list": _list,
    "create": _create,
    "rebuild": _rebuild,
    "drop": _drop,
    "explain": _explain,
    "export": _export,
}


def _print_json(items: Iterable[Json]) -> None:
    for item in items:
        print(json.dumps(item))


def _show_rows(item: Json) -> None:
    assert isinstance(item, Mapping)
    _report(f"{item['rows']:,} rows gone through")


def _report(line: str) -> None:
    print(line, file=sys.stderr)
