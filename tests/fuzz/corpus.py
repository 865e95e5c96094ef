"""Stored inputs: `corpus/TARGET.txt`, a Python bytes literal a line; the comment before one says what it once broke."""

import ast
from collections.abc import Iterable
from pathlib import Path

_DIRECTORY = Path(__file__).parent / "corpus"


def path_of(target: str) -> Path:
    """Where a target's inputs are stored."""
    return _DIRECTORY / f"{target}.txt"


def read(target: str) -> list[bytes]:
    """The stored inputs of a target."""
    path = path_of(target)
    if not path.exists():
        return []
    lines = path.read_text(encoding="ascii").splitlines()
    return [ast.literal_eval(line) for line in lines if line and not line.startswith("#")]


def append(target: str, inputs: Iterable[bytes], comment: str = "") -> None:
    """Store inputs that are not stored yet."""
    known = set(read(target))
    lines = [ascii(data) for data in dict.fromkeys(inputs) if data not in known]
    if not lines:
        return
    _DIRECTORY.mkdir(exist_ok=True)
    with path_of(target).open("a", encoding="ascii") as file:
        if comment:
            lines.insert(0, "# " + ascii(comment)[1:-1])
        file.write("\n".join(lines) + "\n")
