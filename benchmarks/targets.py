"""The targets of `targets.csv`: each line names a measured value and its bound.

`value` is a field of the rows with this section, workload and subject, and with the fields in `where`: their median, or
the most of `MAXIMA`. `against` makes it a multiple of the same field of the rows that differ in these fields: within
each round, and then the median; or of the sum of the medians of several sets of rows, joined by `+`.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.rows import Row

MAXIMA = ("max_ms", "peak_mb", "grown_mb")


def find(rows: Sequence[Row], where: Mapping[str, object]) -> list[Row]:
    """Return the rows whose fields have these values, as they are or as texts."""
    wanted = where.items()
    return [
        row for row in rows if all(getattr(row, name) == it or str(getattr(row, name)) == it for name, it in wanted)
    ]


def middle(rows: Sequence[Row], of: str | Callable[[Row], float | None]) -> float | None:
    """Return the median, or the most, of a field, or of another value of each row; None without values."""
    found: list[float | None] = [getattr(row, of) if isinstance(of, str) else of(row) for row in rows]
    values = [value for value in found if value is not None]
    return (max if of in MAXIMA else median)(values) if values else None


def ratio(ours: Sequence[Row], theirs: Sequence[Row], of: str = "rate") -> float | None:
    """Return the median over the rounds of a field as a multiple of the same field of other rows."""
    by_round = {row.round: getattr(row, of) for row in theirs}
    found = [(getattr(row, of) or 0) / by_round[row.round] for row in ours if by_round.get(row.round)]
    return median(found) if found else None


class Target(NamedTuple):
    """A line of the table."""

    name: str
    section: str
    workload: str
    subject: str
    where: str
    value: str
    against: str
    bound: str
    form: str

    def measured(self, rows: Sequence[Row], subject: str = "") -> float | None:
        """Return the value of the target's subject, or of another, or None if it was not measured."""
        where = {"section": self.section, "subject": subject or self.subject, **_fields(self.where)}
        where |= {"workload": self.workload} if self.workload else {}
        ours = find(rows, where)
        others = [find(rows, {**where, **_fields(each)}) for each in self.against.split(" + ") if each]
        if len(others) == 1:
            return ratio(ours, others[0], self.value)
        medians = [middle(each, self.value) for each in (ours, *others)]
        found = [each for each in medians if each is not None]
        return None if len(found) < len(medians) else found[0] / (sum(found[1:]) or 1)

    def met(self, value: float) -> bool:
        """Return whether a value keeps the bound."""
        sign, bound = self.bound.split()
        return value >= float(bound) if sign == ">=" else value <= float(bound)

    @property
    def text(self) -> str:
        """The bound in words."""
        sign, bound = self.bound.split()
        return f"{'at least' if sign == '>=' else 'at most'} {self.form.format(float(bound))}"


def _fields(text: str) -> dict[str, str]:
    return dict(each.split("=", 1) for each in text.split("; ") if each)


with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _file:
    TARGETS = [Target(**line) for line in csv.DictReader(_file)]
