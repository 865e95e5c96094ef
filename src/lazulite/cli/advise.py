"""`lazulite advise`: advice on the keys of a table, from its queries and writes."""

import json
import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from lazulite.advise.advice import Advice, advise
from lazulite.advise.declared import DeclarationError, workload_from
from lazulite.advise.program import program
from lazulite.advise.report import page, report, text_lines
from lazulite.advise.workload import Workload
from lazulite.cli.errors import CommandError
from lazulite.partitions.targets import TargetsError, targets_from


def run(args: Namespace, _: Mapping[str, str]) -> int:
    """Print the advice, and write it to the files that the flags name; 3 if no keys keep all demands."""
    try:
        advice = advise(_workload(args), targets_from(args.targets), args.top)
    except (DeclarationError, TargetsError) as error:
        raise CommandError(error) from None
    found = report(advice)
    if args.program is not None:
        _write(args.program, program(advice.best))
    if args.output is not None:
        _write(args.output, json.dumps(found) if args.output.suffix == ".json" else page(found))
    if args.json:
        print(json.dumps(found))
    elif args.output is None and args.program is None:
        for line in text_lines(found):
            print(line)
    return _exit_code(advice)


def _workload(args: Namespace) -> Workload:
    return workload_from(args.queries)


def _exit_code(advice: Advice) -> int:
    return 0 if advice.verdict.has_answer else 3


def _write(path: Path, text: str) -> None:
    """Write a new file, which only its owner may read: names of properties are data.

    Raises:
        CommandError: it cannot be written.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None
