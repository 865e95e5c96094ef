"""Files of rules: the schema, errors with their lines, and the presets."""

import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.app.registry import OPERATIONS
from lazulite.faults.rule import Condition
from lazulite.faults.rules_file import BYTES_MAX, KEYS, PRESETS, RulesFileError, parse_rules, source_of
from lazulite.protocol.fault import Effect

RULE = '[[rule]]\nname = "r"\n'


def error_of(text: str) -> str:
    with pytest.raises(RulesFileError) as raised:
        parse_rules(text, OPERATIONS, "f.toml")
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("seed = 1\nsed = 2", "f.toml:2: sed is unknown: there are seed, header and [[rule]]"),
        ("seed = -1", "f.toml:1: seed must be an integer from 0"),
        ("\nheader = 1", "f.toml:2: header must be true or false"),
        ("a = ", "f.toml:1: Invalid value"),
        ("\n[rule]\n", "f.toml:2: rule must be written as [[rule]]"),
        (f'{RULE}eror = "ServerBusy"', "f.toml:3: eror is unknown: the keys are name, service, "),
        ('[[rule]]\nerror = "ServerBusy"', "f.toml:1: name is missing"),
        ('\n[[rule]]\nname = "a b"\nerror = "ServerBusy"', "f.toml:3: name must have 1 to 64 of the characters "),
        (RULE, "f.toml:2: name is that of a rule without effect: a rule has one of delay_seconds, error, "),
        (f'{RULE}error = "ServerBusy"\nreset = "end"', "f.toml:4: reset is a second effect: a rule has one of "),
        (f'{RULE}error = "Busy"', "f.toml:3: error must be an error code, such as ServerBusy"),
        (f'{RULE}reset = "soon"', "f.toml:3: reset must be one of request, answer, head, middle, end"),
        (f"{RULE}truncate = 1.5", "f.toml:3: truncate must be a number from 0 to 1"),
        (f"{RULE}truncate = true", "f.toml:3: truncate must be a number from 0 to 1"),
        (f"{RULE}delay_seconds = nan", "f.toml:3: delay_seconds must be a number from 0 to 3600"),
        (f"{RULE}duplicate = false", "f.toml:3: duplicate must be true"),
        (f"{RULE}page_entries = 0", "f.toml:3: page_entries of 0 needs a probability below 1, every or first"),
        (f"{RULE}page_entries = 1.0", "f.toml:3: page_entries must be an integer from 0 to 5000"),
        (f'{RULE}reset = "end"\nwhen = "after"', "f.toml:4: when is for delay_seconds and error alone"),
        (f'{RULE}delay_seconds = 1\nwhen = "later"', "f.toml:4: when must be one of before, after"),
        (f'{RULE}reset = "end"\noperation = "Foo"', "f.toml:4: operation matches no operation"),
        (f'{RULE}reset = "end"\noperation = ["Get*", "Foo"]', "f.toml:4: operation matches no operation"),
        (
            f'{RULE}page_entries = 1\noperation = "GetBlob"',
            "f.toml:4: operation matches no operation that has page_entries",
        ),
        (f'{RULE}reset = "end"\nservice = "file"', "f.toml:4: service must be one of table, queue, blob"),
        (f'{RULE}reset = "end"\nservice = []', "f.toml:4: service must be a text, or a list of some"),
        (f'{RULE}reset = "end"\nkey = ""', "f.toml:4: key must be a text of 1 to 1024 characters"),
        (f'{RULE}reset = "end"\nheader = "a"', "f.toml:4: header must be a table of names and patterns"),
        (
            f'{RULE}reset = "end"\nheader = {{ Authorization = "*" }}',
            "f.toml:4: header must not name authorization, which has a secret",
        ),
        (
            f'{RULE}reset = "end"\nheader = {{ X-MS-Copy-Source = "*", x-ms-encryption-key = "*" }}',
            "f.toml:4: header must not name x-ms-copy-source or x-ms-encryption-key, which has a secret",
        ),
        (f'{RULE}reset = "end"\nfirst = 0', "f.toml:4: first must be an integer from 1"),
        (f'{RULE}reset = "end"\nfirst = true', "f.toml:4: first must be an integer from 1"),
        (f'{RULE}reset = "end"\nuntil_seconds = 0', "f.toml:4: until_seconds must be greater than from_seconds"),
        (f"{RULE}stale = true\nsecondary = false", "f.toml:4: secondary must be true for stale"),
        (f"{RULE}clock_seconds = 1\nprobability = 0.5", "f.toml:4: probability is not for a clock"),
        (
            f'{RULE}reset = "end"\n\n# again\n{RULE}reset = "end"',
            "f.toml:7: name r is that of another rule",
        ),
        (f'{RULE}reset = "end"\n[rule.header]\na = 1', "f.toml:4: header must be a text of 1 to 1024 characters"),
        ("x = " + "[" * 2000, "f.toml"),
        ("#" * (BYTES_MAX + 1), f"f.toml: rules have at most {BYTES_MAX} characters"),
        (RULE * 101, "f.toml: there are at most 100 rules"),
    ],
)
def test_an_error_names_the_line(text: str, error: str) -> None:
    assert error_of(text).startswith(error)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*KEYS, "other"]),
            st.sampled_from(['"a"', "1", "0.5", "true", "[]", '["a"]', "{}", '{ a = "b" }', '"ServerBusy"', '"end"']),
        ),
        max_size=4,
        unique_by=lambda each: each[0],
    )
)
def test_any_text_is_rules_or_an_error_of_one_line(pairs: list[tuple[str, str]]) -> None:
    text = "\n".join(["[[rule]]", *(f"{key} = {value}" for key, value in pairs)])
    try:
        rules = parse_rules(text, OPERATIONS, "f.toml")
    except RulesFileError as error:
        assert "\n" not in str(error)
        assert 1 <= int(str(error).split(":")[1]) <= len(pairs) + 1
    else:
        assert len(rules) == 1


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_at_all_is_rules_or_an_error(text: str) -> None:
    with suppress(RulesFileError):
        parse_rules(text, OPERATIONS)


def test_rules_have_what_the_text_says() -> None:
    text = 'seed = 7\nheader = true\n[[rule]]\nname = "r"\nservice = "table"\nprobability = 0.5\ntruncate = 0.25'
    (rule,) = parse_rules(text, OPERATIONS)
    assert (rule.name, rule.effect, rule.value, rule.probability) == ("r", Effect.TRUNCATE, 0.25, 0.5)
    assert (rule.seed, rule.shown, rule.condition) == (7, True, Condition(services=("table",)))


def test_a_source_is_a_file_or_a_preset(tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    path.write_bytes(b"seed = 1")
    assert source_of(str(path)) == (str(path), "seed = 1")
    path.write_bytes(b"\xff")
    with pytest.raises(RulesFileError, match="is not UTF-8"):
        source_of(str(path))
    with pytest.raises(RulesFileError, match="No such file or directory; the presets are ambiguous-writes, "):
        source_of(str(tmp_path / "other"))


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_rules(preset: str) -> None:
    source, text = source_of(preset)
    rules = parse_rules(text, OPERATIONS, source)
    assert rules
    assert len(tomllib.loads(text)["rule"]) == len(rules)


def test_the_cautious_client_meets_every_effect() -> None:
    rules = parse_rules(source_of("cautious-client")[1], OPERATIONS)
    assert {rule.effect for rule in rules} == set(Effect) - {Effect.CLOCK, Effect.STALE}
    assert {rule.probability for rule in rules} == {0.01}


def test_ambiguous_writes_are_half_of_all_writes() -> None:
    (rule,) = parse_rules(source_of("ambiguous-writes")[1], OPERATIONS)
    assert (rule.effect, rule.value, rule.probability) == (Effect.RESET, "answer", 0.5)
    assert rule.condition == Condition(changes=True)
