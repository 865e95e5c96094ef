"""What is wrong with a partition whatever the order, and how a verdict is reported."""

from .model import EMPTY, Change, Entity, Query, Verb, Write
from .recorder import Recorder


def test_two_contents_with_one_etag_are_found() -> None:
    recorder = Recorder("p")
    recorder.learn(0, "one", 1)
    recorder.learn(1, "one", 1)
    assert recorder.problems == []
    recorder.learn(0, "one", 2)
    assert recorder.problems == ["p/0: the writes 1 and 2 have the same ETag one"]


def test_changed_etag_is_found() -> None:
    recorder = Recorder("p")
    recorder.learn(0, "one", 1)
    recorder.learn(0, "two", 1)
    assert recorder.problems == ["p/0: write 1 had ETag one, and now has two"]


def test_states_are_carried_over_and_the_history_is_reported() -> None:
    recorder = Recorder("p")
    recorder.history.append(Write(1, None, (Change(Verb.INSERT, 0, None, only_b=False),)))
    assert recorder.judge().states == {EMPTY, (Entity(1, 1, None), None, None)}
    recorder.history.append(Query(2, 3, EMPTY))
    assert recorder.judge().states == {EMPTY}
    recorder.history.append(Query(4, 5, (Entity(1, 1, None), None, None)))
    assert not recorder.judge().states
    assert recorder.problems[0].startswith("p: no order explains Query(invoked=4")
