"""Rules: which requests they hit, and that a run replays."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.app.registry import OPERATIONS
from lazulite.faults import rules as rules_module
from lazulite.faults.rule import _CHANGED, _CREATED, LISTS, Rule, Subject
from lazulite.faults.rule import OPERATIONS as OPERATIONS_OF
from lazulite.faults.rules import NO_FAULTS, FaultRules, RulesError
from lazulite.faults.rules_file import parse_rules
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import CATALOGUE
from lazulite.protocol.fault import Break, Effect, Fault, Moment

INSERT = Subject("table", "InsertEntity", "acct", "orders", "p/r", {}, changes=True)


def rules(text: str, **options: Any) -> FaultRules:
    return FaultRules(parse_rules(text, OPERATIONS), **options)


def rule(*lines: str, effect: str = 'error = "ServerBusy"') -> FaultRules:
    return rules("\n".join(["[[rule]]", 'name = "r"', effect, *lines]))


def hits(of: FaultRules, *subjects: Subject) -> list[bool]:
    return [of.decide_now(subject) is not None for subject in subjects]


@pytest.mark.parametrize(
    ("line", "hit", "missed"),
    [
        ('service = "table"', INSERT, INSERT._replace(service="queue")),
        ('service = ["queue", "table"]', INSERT, INSERT._replace(service="blob")),
        ('operation = "Insert*"', INSERT, INSERT._replace(operation="DeleteEntity")),
        ('operation = ["Delete*", "InsertEntity"]', INSERT, INSERT._replace(operation="InsertOrMergeEntity")),
        ('account = "ACCT"', INSERT, INSERT._replace(account="other")),
        ('resource = "Ord*"', INSERT, INSERT._replace(resource="customers")),
        ('key = "p/*"', INSERT, INSERT._replace(key="q/r")),
        ('header = { X-Tag = "a*" }', INSERT._replace(headers={"x-tag": "ab"}), INSERT._replace(headers={})),
        ('header = { X-Tag = "a*" }', INSERT._replace(headers={"x-tag": "a"}), INSERT._replace(headers={"x-tag": "b"})),
        ("secondary = true", INSERT._replace(secondary=True), INSERT),
        ("changes = false", INSERT._replace(changes=False), INSERT),
    ],
)
def test_a_condition_admits_some_requests(line: str, hit: Subject, missed: Subject) -> None:
    assert hits(rule(line), hit, missed) == [True, False]


def test_every_nth_request_is_hit() -> None:
    assert hits(rule("every = 3"), *[INSERT] * 7) == [False, False, True] * 2 + [False]


def test_the_first_requests_are_hit() -> None:
    assert hits(rule("first = 2"), *[INSERT] * 4) == [True, True, False, False]


def test_requests_of_other_conditions_do_not_count() -> None:
    other = INSERT._replace(operation="DeleteEntity")
    assert hits(rule('operation = "InsertEntity"', "first = 1"), other, INSERT, INSERT) == [False, True, False]


def test_a_window_begins_when_the_rule_is_added() -> None:
    now = [100.0]
    text = '[[rule]]\nname = "r"\nerror = "ServerBusy"\nfrom_seconds = 5\nuntil_seconds = 10'
    of = rules(text, monotonic=lambda: now[0])
    found = []
    for now[0] in (100.0, 104.9, 105.0, 109.9, 110.0):
        found += hits(of, INSERT)
    assert found == [False, False, True, True, False]


SUBJECTS = st.builds(
    INSERT._replace,
    operation=st.sampled_from(["InsertEntity", "DeleteEntity"]),
    resource=st.sampled_from(["orders", "customers"]),
    key=st.sampled_from(["p/1", "p/2", "p/3"]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(SUBJECTS, max_size=60), st.integers(0, 5))
def test_the_same_requests_have_the_same_faults(subjects: Sequence[Subject], seed: int) -> None:
    text = f'seed = {seed}\n[[rule]]\nname = "r"\nerror = "ServerBusy"\nprobability = 0.5'
    assert hits(rules(text), *subjects) == hits(rules(text), *subjects)


@settings(max_examples=100, deadline=None)
@given(st.lists(SUBJECTS, max_size=60))
def test_chance_depends_on_the_requests_of_one_resource_alone(subjects: Sequence[Subject]) -> None:
    """So several connections replay as one, if each has its own resources."""
    text = '[[rule]]\nname = "r"\nerror = "ServerBusy"\nprobability = 0.5'
    together = hits(rules(text), *subjects)
    for subject in set(map(repr, subjects)):
        chosen = [each for each in subjects if repr(each) == subject]
        mixed = [hit for each, hit in zip(subjects, together, strict=True) if repr(each) == subject]
        assert hits(rules(text), *chosen) == mixed


def test_chance_depends_on_seed_and_name() -> None:
    texts = [
        f'seed = {seed}\n[[rule]]\nname = "{name}"\nerror = "ServerBusy"\nprobability = 0.5'
        for seed, name in [(0, "a"), (1, "a"), (0, "b")]
    ]
    assert len({tuple(hits(rules(text), *[INSERT] * 64)) for text in texts}) == 3


@pytest.mark.parametrize("probability", [0.01, 0.5, 0.9])
def test_a_probability_is_a_share_of_requests(probability: float) -> None:
    found = hits(rule(f"probability = {probability}"), *(INSERT._replace(key=f"p/{n}") for n in range(20_000)))
    assert sum(found) == pytest.approx(20_000 * probability, rel=0.15)


def test_a_request_suffers_from_the_first_rule_that_hits_it_and_all_count_it() -> None:
    text = '[[rule]]\nname = "{}"\nerror = "{}"\nevery = {}\n'
    of = rules(text.format("a", "ServerBusy", 2) + text.format("b", "InternalError", 3))
    found = [of.decide_now(INSERT) for _ in range(6)]
    assert [each and each.rule for each in found] == [None, "a", "b", "a", None, "a"]
    listed: Any = of.listed()
    assert [(item["seen"], item["hits"]) for item in listed] == [(6, 3), (6, 1)]


def test_counts_are_bounded() -> None:
    of = rules('[[rule]]\nname = "r"\nerror = "ServerBusy"\nprobability = 0.5', counts_max=20)
    for n in range(1000):
        of.decide_now(INSERT._replace(key=f"p/{n}"))
    assert len(of._young) + len(of._old) <= 20


def test_a_resource_that_is_asked_for_often_is_not_forgotten() -> None:
    of = rules('[[rule]]\nname = "r"\nerror = "ServerBusy"\nprobability = 0.5', counts_max=20)
    alone = rules('[[rule]]\nname = "r"\nerror = "ServerBusy"\nprobability = 0.5')
    for n in range(200):
        assert of.decide_now(INSERT) == alone.decide_now(INSERT)
        of.decide_now(INSERT._replace(key=f"p/{n}"))


def test_rules_are_added_as_a_whole_removed_and_forgotten() -> None:
    changes = []
    of = FaultRules()
    of.on_change.append(lambda: changes.append(of.active))
    one, two = parse_rules(
        '[[rule]]\nname = "a"\nerror = "ServerBusy"\nfirst = 1\n[[rule]]\nname = "b"\nreset = "end"', OPERATIONS
    )
    of.add([one])
    with pytest.raises(RulesError, match="there is a rule a already"):
        of.add([two, one])
    assert list(of) == [one]
    assert hits(of, INSERT, INSERT) == [True, False]
    assert (of.remove("a"), of.remove("a")) == (True, False)
    of.add([one])
    assert hits(of, INSERT) == [True]
    assert of.clear() == 1
    assert changes[0] is True
    assert changes[-1] is False


def test_there_is_a_bound_of_rules() -> None:
    (one,) = parse_rules('[[rule]]\nname = "a"\nerror = "ServerBusy"', OPERATIONS)
    of = FaultRules([one._replace(name=f"r{n}") for n in range(rules_module.RULES_MAX)])
    with pytest.raises(RulesError, match="at most"):
        of.add([one])


def test_a_rule_for_pages_counts_lists_alone() -> None:
    of = rule(effect="page_entries = 2")
    assert hits(of, INSERT, INSERT._replace(operation="QueryEntities")) == [False, True]


def test_a_rule_for_earlier_rows_counts_the_secondary_alone() -> None:
    text = '[[rule]]\nname = "r"\nstale = true'
    (one,) = parse_rules(text, OPERATIONS)
    query = INSERT._replace(operation="QueryEntity")
    assert [one.is_for(query), one.is_for(query._replace(secondary=True))] == [False, True]
    with pytest.raises(RulesError, match="needs the rows of a store"):
        FaultRules([one])


def test_parts_of_batches_suffer_from_nothing_that_is_of_the_connection() -> None:
    part = INSERT._replace(is_part=True)
    assert hits(rule(effect='reset = "end"'), part) == [False]
    assert hits(rule(), part) == [True]


@pytest.mark.parametrize(
    ("subject", "code"),
    [
        (INSERT, "EntityAlreadyExists"),
        (INSERT._replace(operation="MergeEntity", headers={"if-match": "x"}), "UpdateConditionNotSatisfied"),
        (INSERT._replace(operation="MergeEntity", headers={"if-match": "*"}), ""),
        (INSERT._replace(operation="QueryEntity", headers={"if-match": "x"}, changes=False), ""),
        (INSERT._replace(service="blob", operation="PutBlob", headers={"if-match": "x"}), "ConditionNotMet"),
        (INSERT._replace(service="blob", operation="PutBlob", headers={"if-none-match": "*"}), "BlobAlreadyExists"),
        (INSERT._replace(service="queue", operation="PutMessage"), ""),
        (INSERT._replace(operation="CreateTable"), ""),
    ],
)
def test_another_writer_may_be_faster_than_some_writes(subject: Subject, code: str) -> None:
    assert subject.overtaken_code == code
    found = rule(effect="overtaken = true").decide_now(subject)
    assert (found.value if found else "") == code


def test_the_tables_name_what_there_is() -> None:
    assert {*LISTS, *_CREATED, *(name for names in OPERATIONS_OF.values() for name in names)} <= OPERATIONS
    assert CATALOGUE.keys() >= {*_CREATED.values(), *_CHANGED.values(), "BlobAlreadyExists"}


def test_a_clock_is_off_in_its_window_for_its_services() -> None:
    now = [0.0]
    text = '[[rule]]\nname = "r"\nclock_seconds = -90\nservice = "table"\nuntil_seconds = 10'
    of = rules(text, monotonic=lambda: now[0])
    clocks = [of.clock(service, lambda: 1000 * TICKS_PER_SECOND) for service in ("table", "queue")]
    assert [clock() // TICKS_PER_SECOND for clock in clocks] == [910, 1000]
    assert of.clock_fault("table") == Fault("r", Effect.CLOCK, -90.0)
    assert of.clock_fault("queue") is None
    assert of.decide_now(INSERT) is None
    now[0] = 10.0
    assert [clock() // TICKS_PER_SECOND for clock in clocks] == [1000, 1000]


def test_a_clock_cannot_be_off_without_notice() -> None:
    with pytest.raises(RulesError, match="needs a server without workers that was started with --faults"):
        rules('[[rule]]\nname = "r"\nclock_seconds = 1', may_change_clock=False)


def test_without_rules_nothing_happens() -> None:
    assert not NO_FAULTS.active
    assert not FaultRules().active
    assert asyncio.run(NO_FAULTS.decide(INSERT)) is None
    assert NO_FAULTS.clock_fault("table") is None
    assert NO_FAULTS.rows_before("r") is None
    assert FaultRules().rows_before("r") is None


def test_a_fault_has_what_its_rule_says() -> None:
    text = 'header = true\n[[rule]]\nname = "r"\nerror = "ServerBusy"\nwhen = "after"'
    assert rules(text).decide_now(INSERT) == Fault("r", Effect.ERROR, "ServerBusy", Moment.AFTER, shown=True)
    found = rule(effect='reset = "middle"').decide_now(INSERT)
    assert found is not None
    assert Break(str(found.value)) is Break.MIDDLE


def test_a_rule_is_listed_as_it_was_written() -> None:
    of = rule('key = "p/*"', 'header = { X-A = "b" }')
    listed: Any = of.listed()
    given = {"name": "r", "error": "ServerBusy", "key": "p/*", "header": {"X-A": "b"}}
    assert listed == [{"rule": given, "seed": 0, "seen": 0, "hits": 0}]
    assert Rule._field_defaults["given"] == {}
