"""The flags of `lazulite stress`. Those of the plan have the names of its settings, in a file of a plan, too.

Only light modules are imported, so that help is printed at once.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from lazulite.stress.plan import KEY_SCHEMES, RETRIES, WORKLOADS


class PlanFlag(NamedTuple):
    """A flag of the plan; without it, the file of the plan or the default counts."""

    name: str
    read: Callable[[str], object]
    metavar: str
    text: str

    @property
    def setting(self) -> str:
        """The name of the setting in a plan."""
        return self.name.removeprefix("--").replace("-", "_")


def _share(text: str) -> float:
    """Return a share such as `25%` or `0.25`."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a share such as 25% or 0.25") from None


def _list(number: Callable[[str], object]) -> Callable[[str], object]:
    """Return a parser of numbers that are separated by commas."""

    def read(text: str) -> object:
        try:
            return [number(each) for each in text.split(",")]
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not a list of numbers such as 1,2,4") from None

    return read


PLAN_FLAGS = (
    PlanFlag("--workload", str, "NAME", f"{', '.join(WORKLOADS)} (insert)"),
    PlanFlag("--keys", str, "SCHEME", f"how partitions are chosen: {', '.join(KEY_SCHEMES)} (random)"),
    PlanFlag("--partitions", int, "N", "partitions (1)"),
    PlanFlag("--size", int, "BYTES", "size of an entity, a message or a blob (1024)"),
    PlanFlag("--batch", int, "N", "entities of a batch or a page, 1 to 100 (100)"),
    PlanFlag("--entities", int, "N", "entities that get, update and page find (1000)"),
    PlanFlag("--clients", _list(int), "LIST", "clients of each step; with --rate, the connections (8; 64)"),
    PlanFlag("--rate", _list(float), "LIST", "requests per second of each step (as fast as the clients get responses)"),
    PlanFlag("--processes", int, "N", "processes that share the clients (1)"),
    PlanFlag("--seconds", float, "N", "how long each step is measured (10)"),
    PlanFlag("--warm-seconds", float, "N", "the longest wait until a step is steady (30)"),
    PlanFlag("--retry", str, "NAME", f"what clients do when throttled: {', '.join(RETRIES)} (none)"),
    PlanFlag("--margin", _share, "SHARE", "what is added to each load for growth, such as 25%% (0)"),
    PlanFlag(
        "--targets", str, "NAME", "targets to pass: current, study-2010, study-2010-strict or FILE.toml (current)"
    ),
)


def add(parser: ArgumentParser) -> None:
    """Add the flags that only this command has."""
    flag = parser.add_argument_group("plan").add_argument
    for each in PLAN_FLAGS:
        flag(each.name, type=each.read, metavar=each.metavar, help=each.text)
    flag("--plan", type=Path, metavar="FILE", help="TOML file with such settings; flags override it")
    flag = parser.add_argument_group("endpoint").add_argument
    text = "connection string of the account, here or in the cloud: env:NAME, file:PATH, or itself, which other users"
    text += " of this machine may see (env:LAZULITE_CONNECTION_STRING)"
    flag("--connection-string", metavar="TEXT", help=text)
    flag("--connection-string-file", type=Path, metavar="FILE", help="file that has it; -: standard input")
    flag("--yes", action="store_true", help="do not ask before billed requests to another machine")
    flag("--clean", action="store_true", help="only remove what killed runs left over")
    flag = parser.add_argument_group("results").add_argument
    for name in ("csv", "json", "svg", "png"):
        flag(f"--{name}", type=Path, metavar="FILE", help=f"write the results to FILE as {name.upper()}")
    flag("--silent", "-s", action="store_true", help="do not print progress")


def settings(args: Namespace) -> Mapping[str, object]:
    """Return the settings of the plan that flags name."""
    given = {each.setting: getattr(args, each.setting) for each in PLAN_FLAGS}
    return {name: value for name, value in given.items() if value is not None}
