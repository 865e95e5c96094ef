"""A file of queries is read, or rejected with one line that names the place."""

from pathlib import Path

import pytest

from lazulite.advise.declared import BYTES_MAX, DeclarationError, workload_from, workload_of
from lazulite.advise.workload import Condition, Operator

from .workloads import EXAMPLES

MINIMAL = "rows = 10\n"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("", "rows: say how many entities"),
        ("rows = ", "Invalid value"),
        ("rows = -1", "rows: expected a number that is not negative"),
        ("rows = true", "rows: expected a number"),
        (f"{MINIMAL}colour = 1", "colour: there is no such key"),
        (f"{MINIMAL}queries = 1", r"queries: write \[\[queries\]\]"),
        (f"{MINIMAL}[[queries]]\nfilter = 'A eq'\nrate = 1", r"queries\[1\].filter: .* is no \$filter"),
        (f"{MINIMAL}[[queries]]\nfilter = \"A eq 'x'\"", r"queries\[1\]: say one of rate, per_minute"),
        (f"{MINIMAL}[[queries]]\nrate = 1\nper_day = 1", r"queries\[1\]: say one of"),
        (f"{MINIMAL}[[queries]]\nrate = 1\norder = 'A down'", "order: a property, and desc"),
        (f"{MINIMAL}[[queries]]\nrate = 1\nkind = 'K'", "there is no kind 'K'"),
        (f"{MINIMAL}[[queries]]\nrate = 1\ncritical = 1", "critical: expected true or false"),
        (f"{MINIMAL}[[writes]]\nrate = 1\nsame = 'A'", r"writes\[1\].same: expected a list"),
        (f"{MINIMAL}[properties]\nA = 1", "properties.A: expected a table"),
        (f"{MINIMAL}[properties.A]\ntype = 'date'", "properties.A.type: one of text, time"),
        (f"{MINIMAL}[properties.A]\nbusiest = 2", "properties.A.busiest: a share"),
        (f"{MINIMAL}unique = 'A'", "unique: a list"),
        ("rows = 1\nname = 2", "name: expected a text"),
        ("[" * 2000, "."),
    ],
)
def test_a_bad_file_is_rejected(document: str, reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason) as raised:
        workload_of(document, "orders")
    assert "\n" not in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="cannot read"):
        workload_from(tmp_path / "absent.toml")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"\xff")
    with pytest.raises(DeclarationError, match="not UTF-8"):
        workload_from(bad)
    bad.write_bytes(b"#" * (BYTES_MAX + 1))
    with pytest.raises(DeclarationError, match="more than"):
        workload_from(bad)


def test_a_filter_says_how_each_property_is_restricted() -> None:
    found = workload_of(
        "rows = 1\n[[queries]]\nper_minute = 30\n"
        "filter = \"A eq 'x' and B ge 'ab' and B lt 'ac' and C gt 5 and D ne 1\"",
        "t",
    )
    (query,) = found.queries
    assert query.rate == 0.5
    assert query.conditions == (
        Condition("A", Operator.EQUAL),
        Condition("B", Operator.PREFIX),
        Condition("C", Operator.RANGE),
        Condition("D", Operator.OTHER),
    )


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_each_example_is_read(path: Path) -> None:
    assert workload_from(path).name == path.stem
