"""The matrix of conditional headers."""

from itertools import product

import pytest

from lazulite.blob.model.conditions import Conditions, ConditionsError, Outcome, Validators, read_conditions
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
    ("if-none-match", "*", Outcome.UNSATISFIABLE, MET),
    ("if-modified-since", BEFORE, MET, MET),
    ("if-modified-since", AT, SAME, FAILED),
    ("if-modified-since", AFTER, SAME, FAILED),
    ("if-unmodified-since", BEFORE, FAILED, FAILED),
    ("if-unmodified-since", AT, MET, MET),
    ("if-unmodified-since", AFTER, MET, MET),
]


def read(headers: dict[str, str], *, writes: bool) -> Conditions:
    return read_conditions(headers, writes=writes)


@pytest.mark.parametrize(("name", "text", "of_read", "of_write"), ROWS)
def test_one_header(name: str, text: str, of_read: Outcome, of_write: Outcome) -> None:
    assert read({name: text}, writes=False).read(FOUND) is of_read
    assert read({name: text}, writes=True).write(FOUND) is of_write


def test_creating_what_exists() -> None:
    conditions = read({"if-none-match": "*"}, writes=True)
    assert conditions.write(FOUND, creates=True) is Outcome.EXISTS
    assert conditions.write(None, creates=True) is MET


@pytest.mark.parametrize(("name", "text"), [row[:2] for row in ROWS])
def test_creating_what_is_missing(name: str, text: str) -> None:
    expected = FAILED if name == "if-match" else MET
    assert read({name: text}, writes=True).write(None, creates=True) is expected


def test_a_failure_wins_over_an_unchanged_blob_when_headers_are_combined() -> None:
    values = {name: {row[1]: row[2] for row in ROWS if row[0] == name and row[1] != "*"} for name, *_ in ROWS}
    names = list(values)
    for texts in product(*values.values()):
        outcomes = dict(zip(names, (values[name][text] for name, text in zip(names, texts, strict=True)), strict=True))
        must = (outcomes["if-match"], outcomes["if-unmodified-since"])
        either = (outcomes["if-none-match"], outcomes["if-modified-since"])
        expected = FAILED if FAILED in must else MET if MET in either else SAME
        assert read(dict(zip(names, texts, strict=True)), writes=False).read(FOUND) is expected


def test_lists_of_tags_are_for_reads() -> None:
    both = {"if-match": '"0x8E", "0x8D"'}
    assert read(both, writes=False).read(FOUND) is MET
    assert read({"if-none-match": '"0x8E","0x8D"'}, writes=False).read(FOUND) is SAME
    with pytest.raises(ConditionsError) as raised:
        read(both, writes=True)
    assert raised.value.header == ""


NAMES = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
PAIRS = {NAMES[1:3], (NAMES[0], NAMES[3])}


@pytest.mark.parametrize("given", list(product([False, True], repeat=4)))
def test_writes_combine_two_pairs_only(given: tuple[bool, ...]) -> None:
    names = tuple(name for name, is_given in zip(NAMES, given, strict=True) if is_given)
    headers = {name: AT if name.endswith("since") else '"0x8D"' for name in names}
    if len(names) <= 1 or names in PAIRS:
        read(headers, writes=True)
        return
    with pytest.raises(ConditionsError) as raised:
        read(headers, writes=True)
    assert raised.value.header == ""


@pytest.mark.parametrize(("name", "text"), [("if-match", ""), ("if-match", '"a",,"b"'), ("if-modified-since", "now")])
@pytest.mark.parametrize("writes", [False, True])
def test_bad_values_are_named(name: str, text: str, *, writes: bool) -> None:
    with pytest.raises(ConditionsError) as raised:
        read({name: text}, writes=writes)
    assert raised.value.header == name


def test_conditions_on_a_source_have_names_of_their_own() -> None:
    headers = {"x-ms-source-if-match": '"a"', "if-match": '"b"'}
    assert read_conditions(headers, "x-ms-source-", writes=False).match == ("a",)
