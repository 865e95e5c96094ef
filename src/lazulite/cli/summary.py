"""What long commands print: progress on stderr, and a summary on stdout.

People read lines as they come, a label in a column of its own, then the value. Machines (`--json`) read one object at
the end, and objects of progress, notes and errors in lines of stderr.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self, TextIO

from lazulite.cli.progress_line import ProgressLine

_LABEL_WIDTH = len("containers")


def labelled(label: str, value: object) -> str:
    """Return a line of a summary; numbers have separators of thousands."""
    text = f"{value:,}" if isinstance(value, int) else value
    return f"{label:<{_LABEL_WIDTH}} {text}"


class SummaryLine(NamedTuple):
    """A line of a summary."""

    label: str
    value: object

    def __str__(self) -> str:
        return labelled(*self)


class CommandOutput:
    """What a long command prints. Use it as a context manager, which prints the object for machines at the end.

    Args:
        progress: shows the progress, and says whether machines read.
        output: where the summary goes.
    """

    def __init__(self, progress: ProgressLine, output: TextIO) -> None:
        self.progress = progress
        self._output = output
        self._object: dict[str, object] = {}

    @classmethod
    def from_args(cls, args: Namespace, *, silent: bool = False, summary: bool = True) -> Self:
        """Return the one that the flags ask for.

        Args:
            args: with `json_lines`, see `parser`.
            silent: show no progress.
            summary: stdout is free for the summary; else it goes to stderr.
        """
        progress = ProgressLine.of_user(silent=silent, json=args.json_lines)
        return cls(progress, sys.stdout if summary else sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self.progress.clear()
        if self.progress.json and (kind is None or self._object):
            print(json.dumps({**self._object, "ok": kind is None}, ensure_ascii=False), file=self._output, flush=True)

    def tell(self, text: str, values: Mapping[str, object] | None = None) -> None:
        """Print a line for people; keep the values for machines."""
        self._object.update(values or {})
        self._print(text)

    def tell_line(self, label: str, value: object) -> None:
        """Print a line of the summary; machines get the value by the label."""
        self.tell(labelled(label, value), {label: value if isinstance(value, int) else str(value)})

    def tell_item(self, items: str, text: str, values: Mapping[str, object]) -> None:
        """Print a line about one of many things; machines get a list of them by its name."""
        found = self._object.setdefault(items, [])
        assert isinstance(found, list)
        found.append(values)
        self._print(text)

    def _print(self, text: str) -> None:
        if not self.progress.json:
            self.progress.clear()
            print(text, file=self._output, flush=True)
