"""Histories that break one promise each, and some that look like it and do not."""

from typing import Any

import pytest

from .checker import check
from .history import NEVER, SECOND, Event, History, Kind, Seen, Time
from .order import Order, order_of


class Story:
    """Events at times in seconds, each of a tenth of a second."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, kind: Kind, at: float, *, done: bool | None = True, long: float = 0.1, **fields: Any) -> "Story":
        """Add an event that begins at a time."""
        began = int(at * SECOND)
        event = Event(kind, began, began + int(long * SECOND), done, **fields)
        self.events.append(event)
        return self

    def put(self, at: float, number: int = 1, *, done: bool | None = True, **fields: Any) -> "Story":
        """Add a put."""
        seen = (Seen(number, f"id{number}", f"r{number}.0"),) if done else ()
        return self.add(Kind.PUT, at, done=done, number=number, seen=seen, **fields)

    def get(self, at: float, dequeues: int = 1, number: int = 1, **fields: Any) -> "Story":
        """Add a get of one message for ten seconds."""
        seen = Seen(number, f"id{number}", f"r{number}.{dequeues}", 0, dequeues)
        defaults: dict[str, Any] = {"seen": (seen,), "seconds": 10, "asked": 1}
        return self.add(Kind.GET, at, **(defaults | fields))

    def peek(self, at: float, dequeues: int = 0, number: int = 1) -> "Story":
        """Add a peek of one message."""
        return self.add(Kind.PEEK, at, seen=(Seen(number, f"id{number}", "", 0, dequeues),), asked=1)

    def none(self, at: float) -> "Story":
        """Add a get that returns nothing."""
        return self.add(Kind.GET, at, seconds=10, asked=1)

    def lost_get(self, at: float, long: float = 0.1) -> "Story":
        """Add a get without a response."""
        return self.add(Kind.GET, at, done=None, long=long, seconds=10, asked=1)

    def delete(self, at: float, receipt: str, number: int = 1, *, done: bool | None = True) -> "Story":
        """Add a delete."""
        return self.add(Kind.DELETE, at, done=done, number=number, receipt=receipt)

    def update(self, at: float, receipt: str, to: str, seconds: int = 0, version: int = -1) -> "Story":
        """Add an update of message 1 that leaves a receipt."""
        seen = (Seen(1, "id1", to),)
        return self.add(Kind.UPDATE, at, number=1, receipt=receipt, seconds=seconds, seen=seen, version=version)

    def problems(self, time: Time | None = None, drain: float | None = None) -> list[str]:
        """Return what the checker says."""
        return check(self.events, time or Time(allowance=0), None if drain is None else int(drain * SECOND))


SOUND = [
    pytest.param(Story().put(1).get(2).delete(3, "r1.1"), id="got and deleted"),
    pytest.param(Story().put(1).get(2).get(13, 2).delete(14, "r1.1", done=False), id="an old receipt is rejected"),
    pytest.param(Story().put(1).get(2).get(12, 2), id="got again when it is over"),
    pytest.param(Story().put(1).get(2).update(3, "r1.1", "u").get(4, 2), id="made visible by an update"),
    pytest.param(Story().put(1).lost_get(2).get(13, 2), id="a get without a response counts"),
    pytest.param(Story().put(1).lost_get(2).none(5).get(13, 2), id="a get without a response hides"),
    pytest.param(Story().put(1).lost_get(2).delete(5, "r1.0", done=False), id="it makes the receipt of the put old"),
    pytest.param(Story().put(1, done=None).get(2), id="a put without a response took effect"),
    pytest.param(Story().put(1, done=None).none(2), id="a put without a response took none"),
    pytest.param(Story().put(1).get(2).delete(3, "r1.1", done=None).get(13, 2), id="a delete without a response"),
    pytest.param(Story().put(1).get(2).delete(3, "r1.1", done=None).none(13), id="which took effect"),
    pytest.param(Story().put(1, seconds=5).none(3).get(6.2), id="put with a delay"),
    pytest.param(Story().put(1, ttl=5).get(5).none(20), id="expired"),
    pytest.param(Story().put(1).add(Kind.CLEAR, 2).none(3), id="cleared"),
    pytest.param(Story().put(1).add(Kind.CLEAR, 2, done=None).get(3), id="a clear without a response"),
    pytest.param(Story().put(1).put(1, 2).get(2).get(2, 1, 2).none(4), id="both are held"),
    pytest.param(Story().put(1).add(Kind.COUNT, 2, count=1).get(3).add(Kind.COUNT, 4, count=1), id="counted"),
]


@pytest.mark.parametrize("story", SOUND)
def test_sound_histories(story: Story) -> None:
    assert story.problems() == []


BROKEN = [
    (Story().get(2), "put 0 times"),
    (Story().put(1, done=False).get(2), "no put had"),
    (Story().put(3).get(1), "no put had"),
    (Story().put(1).get(2, seen=(Seen(1, "other", "x", 0, 1),)), "two ids"),
    (Story().put(1).get(2, seen=(Seen(1, "id1", "x", 5, 1),)), "never had"),
    (Story().put(1).get(2).update(3, "r1.1", "u", 0, 4).get(5, 2), "version 0 of its text, not 4"),
    (Story().put(1).get(2).get(3, 2), "before it was visible again"),
    (Story().put(1).get(2).peek(3, 1), "before it was visible again"),
    (Story().put(1).get(2).update(3, "r1.1", "u", 30).get(13, 2), "before it was visible again"),
    (Story().put(1, seconds=5).get(3), "before it was visible again"),
    (Story().put(1).get(2).get(13, 1), "same dequeue count"),
    (Story().put(1).get(2).get(13, 3), "rose by 2"),
    (Story().put(1).get(13, 1).get(2, 2), "with a higher dequeue count"),
    (Story().put(1).get(2).peek(13, 0), "with dequeue count 0, not 1 to 1"),
    (Story().put(1).peek(2, 1), "with dequeue count 1, not 0 to 0"),
    (Story().put(1).get(2).delete(3, "r1.1").get(13, 2), "found it after the delete"),
    (Story().put(1).get(2).delete(3, "r1.1").peek(13, 1), "found it after the delete"),
    (Story().put(1).get(2).delete(3, "r1.1").delete(4, "r1.1"), "deleted twice"),
    (Story().put(1).add(Kind.CLEAR, 2).get(3), "found it after the clear"),
    (Story().put(1, ttl=5).get(7), "after it had expired"),
    (Story().put(1).get(2).get(13, 2).delete(14, "r1.1"), "with an old receipt"),
    (Story().put(1).get(2).update(3, "r1.1", "u", 5).delete(4, "r1.1"), "with an old receipt"),
    (Story().put(1).get(2).update(3, "r1.1", "u").update(3, "r1.1", "v"), "with the receipt of the update"),
    (Story().put(1).get(2).delete(3, "other"), "receipt that no response had"),
    (Story().put(1).get(2).delete(3, "r1.1", done=False), "was rejected, with the latest receipt"),
    (Story().put(1).none(2), "left message 1, which was visible"),
    (Story().put(1).get(2).none(13), "left message 1, which was visible"),
    (Story().put(1).add(Kind.COUNT, 2, count=0), "counted 0 messages, not 1 to 1"),
    (Story().put(1).get(2).delete(3, "r1.1").add(Kind.COUNT, 4, count=1), "counted 1 messages, not 0 to 0"),
]


@pytest.mark.parametrize(("story", "problem"), BROKEN, ids=[f"{at}: {text}" for at, (_, text) in enumerate(BROKEN)])
def test_broken_promises_are_found(story: Story, problem: str) -> None:
    assert any(problem in each for each in story.problems()), story.problems()


@pytest.mark.parametrize(
    ("story", "lost"),
    [
        (Story().put(1).get(31), False),
        (Story().put(1).get(2), True),
        (Story().put(1), True),
        (Story().put(1, done=None), False),
        (Story().put(1, done=None).get(2), True),
        (Story().put(1, done=None).peek(2), True),
        (Story().put(1).get(2).delete(3, "r1.1"), False),
        (Story().put(1).get(2).delete(3, "r1.1", done=None), False),
        (Story().put(1, ttl=5), False),
        (Story().put(1).add(Kind.CLEAR, 2), False),
        (Story().add(Kind.CLEAR, 0.5).put(1), True),
    ],
)
def test_each_message_is_accounted_for_in_the_end(story: Story, *, lost: bool) -> None:
    problems = story.add(Kind.GET, 40, asked=0).problems(drain=30)
    assert any("it was lost" in problem for problem in problems) is lost, problems


def test_steps_of_the_clock() -> None:
    story = Story().put(1).get(2).get(4, 2)
    ahead = Time(allowance=0)
    ahead.step(3 * SECOND, 8 * SECOND)
    assert story.problems(ahead) == []
    ahead.step(int(3.5 * SECOND), -100 * SECOND)  # What a server knew of the time before is not lost.
    assert (ahead.earliest(4 * SECOND), ahead.latest(4 * SECOND)) == (-96 * SECOND, int(11.5 * SECOND))
    assert story.problems(ahead) != []
    later = Story().put(1).get(2).none(20)
    assert later.problems() != []
    behind = Time(allowance=0)
    behind.step(3 * SECOND, -100 * SECOND)
    assert later.problems(behind) == []


def test_other_processes_may_learn_late_of_a_clear() -> None:
    late = Time(allowance=0, spread=3 * SECOND)

    def story() -> Story:
        return Story().put(1).add(Kind.CLEAR, 2)

    for sound in (story().peek(4), story().put(3, 2).none(4), story().add(Kind.COUNT, 4, count=1)):
        assert sound.problems(late) == []
        assert sound.problems() != []
    for wrong in (story().peek(6), story().put(3, 2).none(6), story().add(Kind.COUNT, 6, count=1)):
        assert wrong.problems(late) != []


def test_changes_know_of_a_clear_at_once() -> None:
    late = Time(allowance=0, spread=3 * SECOND)

    def story() -> Story:
        return Story().put(1).get(1.5).add(Kind.CLEAR, 2)

    assert story().get(3, 2).problems(late) != []
    assert story().update(3, "r1.1", "u").problems(late) != []
    assert story().put(3, 2).problems(late, drain=8) != [], "a message that was put after the clear stays"
    assert story().put(3, 2).get(9, 1, 2).problems(late, drain=8) == []


def test_a_history_goes_back() -> None:
    calls = iter(range(100))
    history = History(lambda: next(calls))
    token = history.begin(Event(Kind.PUT, 0, number=1))
    history.end(token, done=True, seen=[Seen(1, "id1", "r")])
    history.begin(Event(Kind.PUT, 1, number=2))
    history.settle()
    [done, open_] = history.events
    assert (done.done, open_.done, open_.ended > 0) == (True, None, True)
    history.go_back(done.moments[1])
    assert history.events == [done]
    history.go_back(done.moments[1] - 1)
    assert [(each.done, each.seen) for each in history.events] == [(None, ())]
    history.count_anew()
    history.go_back(0)
    assert len(history.events) == 1


def test_order() -> None:
    story = Story().put(1, 1).put(2, 2).put(3, 3).get(4, 1, 3).get(5, 1, 1).get(6, 1, 2).put(7, 4, ttl=NEVER)
    assert order_of(story.events) == Order(3, 2, 1)
