"""The values of a summary stand below each other."""

from lazulite.app.registry import SPACES
from lazulite.cli.summary import labelled


def test_numbers_have_separators() -> None:
    assert labelled("bytes", 1234567) == "bytes      1,234,567"


def test_no_noun_of_a_service_moves_its_value() -> None:
    labels = [label for nouns in SPACES.nouns for label in (nouns.space, nouns.spaces, nouns.rows)]
    assert {labelled(label, "x").index("x", len(label)) for label in labels} == {len("containers ")}
