"""The matrix of conditional headers."""

from itertools import product

import pytest

from lazulite.blob.model.conditions import Conditions, Outcome, Validators, read_date, read_etags
from lazulite.blob.model.tag_expression import Comparison
from lazulite.protocol.clock import TICKS_PER_SECOND

MET, FAILED, SAME = Outcome.MET, Outcome.FAILED, Outcome.NOT_MODIFIED
SECOND = 13_569_465_600
FOUND = Validators("0x8D", SECOND * TICKS_PER_SECOND + 5)
"""Modified in the second of 2031-01-01 00:00:00."""
AT, BEFORE, AFTER = (f"Wed, 01 Jan 2031 00:00:0{second} GMT" for second in (1, 0, 2))
FOUND = FOUND._replace(modified=FOUND.modified + TICKS_PER_SECOND)

ROWS = [
    ("if-match", '"0x8D"', MET, MET),
    ("if-match", "0x8D", MET, MET),
    ("if-match", '"0x8E"', FAILED, FAILED),
    ("if-match", "*", MET, MET),
    ("if-none-match", '"0x8D"', SAME, FAILED),
    ("if-none-match", '"0x8E"', MET, MET),
    ("if-none-match", "*", SAME, MET),
    ("if-modified-since", BEFORE, MET, MET),
    ("if-modified-since", AT, SAME, FAILED),
    ("if-modified-since", AFTER, SAME, FAILED),
    ("if-unmodified-since", BEFORE, FAILED, FAILED),
    ("if-unmodified-since", AT, MET, MET),
    ("if-unmodified-since", AFTER, MET, MET),
]


def read(headers: dict[str, str]) -> Conditions:
    fields = {name.removeprefix("if-").replace("-", "_"): text for name, text in headers.items()}
    read_by = {"match": read_etags, "none_match": read_etags}
    return Conditions(**{name: read_by.get(name, read_date)(text) for name, text in fields.items()})  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "text", "of_read", "of_write"), ROWS)
def test_one_header(name: str, text: str, of_read: Outcome, of_write: Outcome) -> None:
    assert read({name: text}).read(FOUND) is of_read
    assert read({name: text}).write(FOUND) is of_write


def test_creating_what_exists() -> None:
    conditions = read({"if-none-match": "*"})
    assert conditions.write(FOUND, creates=True) is Outcome.EXISTS
    assert conditions.write(None, creates=True) is MET


@pytest.mark.parametrize(("name", "text"), [row[:2] for row in ROWS])
def test_creating_what_is_missing(name: str, text: str) -> None:
    expected = FAILED if name == "if-match" else MET
    assert read({name: text}).write(None, creates=True) is expected


def test_a_failure_wins_over_an_unchanged_blob_when_headers_are_combined() -> None:
    values = {name: {row[1]: row[2] for row in ROWS if row[0] == name and row[1] != "*"} for name, *_ in ROWS}
    names = list(values)
    for texts in product(*values.values()):
        outcomes = dict(zip(names, (values[name][text] for name, text in zip(names, texts, strict=True)), strict=True))
        must = (outcomes["if-match"], outcomes["if-unmodified-since"])
        either = (outcomes["if-none-match"], outcomes["if-modified-since"])
        expected = FAILED if FAILED in must else MET if MET in either else SAME
        assert read(dict(zip(names, texts, strict=True))).read(FOUND) is expected


def test_lists_of_etags_are_for_reads() -> None:
    both = read({"if-match": '"0x8E", "0x8D"'})
    assert both.read(FOUND) is MET
    assert read({"if-none-match": '"0x8E","0x8D"'}).read(FOUND) is SAME
    assert not both.are_for_a_write


NAMES = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
PAIRS = {NAMES[1:3], (NAMES[0], NAMES[3])}


@pytest.mark.parametrize("given", list(product([False, True], repeat=4)))
def test_writes_combine_two_pairs_only(given: tuple[bool, ...]) -> None:
    names = tuple(name for name, is_given in zip(NAMES, given, strict=True) if is_given)
    headers = {name: AT if name.endswith("since") else '"0x8D"' for name in names}
    assert read(headers).are_for_a_write == (len(names) <= 1 or names in PAIRS)


@pytest.mark.parametrize("text", ["", '"a",,"b"', ",".join(["a"] * 66)])
def test_bad_lists_of_etags(text: str) -> None:
    with pytest.raises(ValueError, match="no ETags"):
        read_etags(text)


SECONDS = SECOND + 1
"""Of `AT`."""


@pytest.mark.parametrize(
    ("changed", "since", "met"),
    [(0, 0, False), (SECONDS, SECONDS, False), (SECONDS, SECONDS - 1, True), (SECONDS, SECONDS + 1, False)],
)
def test_the_tier_of_a_blob_that_is_written(changed: int, since: int, *, met: bool) -> None:
    found = FOUND._replace(tier_changed=changed * TICKS_PER_SECOND + 5 if changed else 0)
    assert (Conditions(tier_modified_since=since).write(found) is MET) == met
    assert (Conditions(tier_unmodified_since=since).write(found) is MET) != met
    beside = Conditions(match=("0x8E",), tier_modified_since=since)
    assert beside.write(found) is FAILED


def test_tags_have_an_outcome_of_their_own() -> None:
    only = Conditions(tags=Comparison("a", "=", "1"))
    assert only.read(FOUND) is only.write(FOUND) is only.write(None) is Outcome.OTHER_TAGS
    assert only.read(FOUND._replace(tags={"a": "1"})) is MET
