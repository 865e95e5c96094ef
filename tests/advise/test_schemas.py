"""The schemas of the study and of the design guide get the keys that these give them."""

import pytest

from lazulite.advise.advice import Advice, avoided
from lazulite.advise.layout import described
from lazulite.advise.steps import dominant

from .workloads import advised

ANSWERS = {
    "component_logs": "PartitionKey = Component;Instance;bucket of 4, RowKey = Time;Id",
    "movies": "PartitionKey = Category, RowKey = Title",
    "rentals": "PartitionKey = MemberId, RowKey = Member and Rental_Movie",
    "employees": "PartitionKey = Department, RowKey = id_Id and mail_Mail",
    "recent_first": "PartitionKey = User, RowKey = reversed Time;new id",
    "blogs": ("PartitionKey = Author, RowKey = date_reversed Date;PostId and category_Category;reversed Date;PostId"),
}
CLASSES = {
    "component_logs": ["partition range", "partition range"],
    "movies": ["partition scan", "point"],
    "rentals": ["point", "row range"],
    "employees": ["point", "point", "partition scan"],
    "recent_first": ["partition scan"],
    "blogs": ["partition scan", "row range"],
}


def keys(advice: Advice, place: int = 0) -> str:
    return described(advice.candidates[place].layout, advice.workload.kinds)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_schema_has_its_answer(name: str) -> None:
    advice = advised(name)
    assert advice.verdict.has_answer
    assert keys(advice) == ANSWERS[name]
    assert described(advice.procedure.candidate.layout, advice.workload.kinds) == ANSWERS[name], "by the nine steps"
    assert [each.kind for each in advice.best.accesses] == CLASSES[name]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (500, "PartitionKey = Component, RowKey = Instance;Time;Id"),
        (4_000, "PartitionKey = Component;Instance, RowKey = Time;Id"),
        (9_000, "PartitionKey = Component;Instance;bucket of 4, RowKey = Time;Id"),
        (90_000, "PartitionKey = Component;Instance;bucket of 37, RowKey = Time;Id"),
    ],
)
def test_logs_get_finer_keys_as_their_rate_rises(rate: int, expected: str) -> None:
    advice = advised("component_logs", ("rate = 9_000", f"rate = {rate}"))
    assert keys(advice) == expected
    assert advice.best.of_target <= 1


def test_a_bucket_comes_last_since_one_before_makes_scans() -> None:
    advice = advised("component_logs")
    places = {keys(advice, place): place for place in range(len(advice.candidates))}
    first = places["PartitionKey = bucket of 4;Component;Instance, RowKey = Time;Id"]
    assert first > 0
    assert [each.kind for each in advice.candidates[first].accesses] == ["table scan", "table scan"]


def test_a_time_as_partition_key_is_warned_of() -> None:
    found = {each.keys: " ".join(each.reasons) for each in avoided(advised("component_logs"))}
    (by_time,) = [reasons for keys, reasons in found.items() if keys.startswith("PartitionKey = Time,")]
    assert "Danger: append-only: Time rises, so 9,000 entities/s go to the end of the table" in by_time


def test_movies_newest_first_count_the_date_down() -> None:
    advice = advised("movies", ('order = "Title"', 'order = "Released desc"'))
    assert keys(advice) == "PartitionKey = Category, RowKey = released_reversed Released;Title and title_Title"


def test_a_rental_and_its_count_are_one_transaction() -> None:
    advice = advised("rentals")
    (write,) = advice.workload.writes
    assert advice.best.keeps_together(write)
    assert all("atomic" in each.broken for each in advice.candidates if "MemberId" not in keys(advice))


def test_without_an_answer_the_conflict_is_named() -> None:
    advice = advised("no_answer")
    said = " ".join(advice.verdict.sentences)
    assert not advice.verdict.has_answer
    assert "each choice gives up atomic and order, or scale" in said
    assert "Scale: 12,000 entities/s are written, and one partition is good for 2,000." in said
    assert "Order: 'all payments in order' wants rows of the whole table in the order of Time." in said
    assert "buckets and a merge at the reader: PartitionKey = bucket of 13, RowKey = Time;new id" in said
    assert "heapq.merge" in said


def test_each_demand_takes_part_in_the_conflict() -> None:
    slow = advised("no_answer", ("rate = 4_000", "rate = 100"))
    assert slow.verdict.has_answer, "one partition takes 300 entities/s and the reads"
    unordered = advised("no_answer", ('order = "Time"\n', ""), ("atomic = true", "atomic = false"))
    assert unordered.verdict.has_answer, "buckets take any rate"
    assert unordered.best.layout.buckets > 1


def test_dominant_is_the_query_that_users_wait_for() -> None:
    advice = advised("employees", ("rate = 50\ncritical = true", "rate = 50"))
    query = dominant(advice.workload)
    assert query is not None
    assert query.name == "an employee by mail"
