"""Changes of single expressions in the source, each run against the tests: which of them do the tests find?

`python -m tests.mutations` prints a line for each mutation with the suite that failed first. The sample depends on the
seed and the sources alone, so two versions of the tests can be compared: `--tests` names another checkout.

Invariant: the checkout's sources stay as they are. A mutation is made in a copy that comes first on `PYTHONPATH`.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lazulite"
SECONDS_MAX = 900
"""Of a suite; a mutation that makes it take longer is found."""
SUITES = ("unit", "tests/conformance", "tests/sdk")
"""In this order; `unit` stands for the module's own tests."""
SLOW = ("failover", "javascript", "kill", "legacy_python", "workers")
"""Files of the SDK suite whose subject is not these modules."""
MODULES = (
    *("auth/authenticator.py", "auth/grant.py", "auth/shared_key.py", "auth/sas.py"),
    *("protocol/addressing.py", "protocol/content_md5.py", "protocol/query_string.py"),
    *("protocol/version.py", "protocol/multipart.py", "protocol/xml/parser.py", "service/cors.py"),
    *("service/properties_xml.py", "service/signed_identifiers.py", "table/etag_condition.py", "table/names.py"),
    *("table/resource.py", "table/batch/transaction.py", "table/model/edm.py"),
    *("table/model/entity.py", "table/payload/json_reader.py", "table/payload/formats.py"),
    *("table/payload/atom.py", "table/query/continuation.py", "table/query/options.py", "table/query/page.py"),
    *("server/http/inbound.py", "service/kernel.py", "service/plans.py"),
    "records/catalog.py",
    *("table/query/filter/parser.py", "table/operations/write_decisions.py"),
    *("table/indexes/build.py", "table/indexes/encoding.py", "table/indexes/entries.py"),
    *("table/indexes/planner.py", "table/indexes/reader.py", "table/expiry/definition.py", "table/expiry/sweep.py"),
)
"""Where requests are judged."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutation(NamedTuple):
    """A module, the line of the change, both texts of it, and the module's new source."""

    module: str
    line: int
    before: str
    after: str
    source: str


def mutated(node: ast.AST) -> ast.AST | None:
    """Return what may stand in a node's place, None for a node that is left alone."""
    new = deepcopy(node)
    match new:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            new.ops = [_COMPARISONS[type(op)]()]
        case ast.BoolOp(op=op):
            new.op = ast.And() if isinstance(op, ast.Or) else ast.Or()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            new.value = value + 1
        case ast.Raise(exc=ast.Call()):
            return ast.Pass()
        case _:
            return None
    return new


def mutations(module: str, text: str) -> Iterator[Mutation]:
    """Yield every mutation of a module."""
    tree = ast.parse(text)
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            places: Sequence[object] = value if isinstance(value, list) else [value]
            for index, node in enumerate(places):
                new = mutated(node) if isinstance(node, ast.expr | ast.stmt) else None
                if new is None or not isinstance(node, ast.expr | ast.stmt):
                    continue
                changed = [*places[:index], new, *places[index + 1 :]] if isinstance(value, list) else new
                setattr(parent, name, changed)
                source = ast.unparse(ast.fix_missing_locations(tree))
                setattr(parent, name, value)
                yield Mutation(module, node.lineno, ast.unparse(node), ast.unparse(new), source)


def sample(seed: int, each: int) -> list[Mutation]:
    """Return some mutations of each module."""
    dice = Random(seed)
    chosen = []
    for module in MODULES:
        found = list(mutations(module, (SOURCE / module).read_text(encoding="utf-8")))
        chosen += sorted(dice.sample(found, min(each, len(found))), key=lambda mutation: mutation.line)
    return chosen


def unit_tests(module: str, tests: Path) -> list[str]:
    """Return the module's own tests, or those of its package."""
    path = Path("tests") / module
    own = sorted((tests / path.parent).glob(f"test_{path.stem}*.py"))
    return [str(each.relative_to(tests)) for each in own] or [str(path.parent)]


def finder(mutation: Mutation, tests: Path, suites: Sequence[str]) -> str:
    """Return the first suite that fails, an empty text if none does."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "lazulite"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / mutation.module).write_text(mutation.source, encoding="utf-8")
        for suite in suites:
            paths = unit_tests(mutation.module, tests) if suite == "unit" else [suite]
            if not passes(paths, directory, tests):
                return paths[0]
    return ""


def passes(paths: Sequence[str], sources: str, tests: Path) -> bool:
    """Tell whether tests pass on these sources."""
    flags = ["-q", "-x", "-p", "no:cacheprovider", *(f"--ignore=tests/sdk/test_{each}.py" for each in SLOW)]
    command = [sys.executable, "-m", "pytest", *flags, *paths]
    environment = os.environ | {"PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=tests, env=environment, capture_output=True, check=False, timeout=SECONDS_MAX
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> None:
    """Run a sample; print a line of a table for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=2, help="mutations of each module")
    parser.add_argument("--tests", type=Path, default=ROOT, help="the checkout whose tests run")
    parser.add_argument("--first", type=int, default=1, help="the number of the mutation to begin with")
    parser.add_argument("suites", nargs="*", default=SUITES, help="paths, and `unit` for the module's own tests")
    args = parser.parse_args()
    for number, mutation in list(enumerate(sample(args.seed, args.each), 1))[args.first - 1 :]:
        texts = (f"`{' '.join(text.split())[:60]}`".replace("|", "\\|") for text in (mutation.before, mutation.after))
        where = f"{mutation.module}:{mutation.line}"
        found = finder(mutation, args.tests, args.suites) or "none"
        print(f"| {number} | {where} | {' | '.join(texts)} | {found} |", flush=True)


if __name__ == "__main__":
    main()
