"""Progress for people: a bar on a terminal, a line now and then elsewhere."""

import io
import json

from lazulite.cli.progress_line import (
    DRAW_SECONDS,
    LINE_SECONDS,
    BytesDone,
    ProgressLine,
    RowsRead,
    StepsDone,
    bar,
    duration_text,
    fitted,
)
from lazulite.migration.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Timer:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_progress_is_a_line_every_few_seconds() -> None:
    output, timer = io.StringIO(), Timer()
    progress = ProgressLine(output, timer)
    tally = Progress("copied", rows=500, parts=2)
    for second in range(10):
        timer.now = second
        tally.rows = 500 + 100 * second
        progress.show(tally)
        progress.clear()
    assert LINE_SECONDS == 5
    assert output.getvalue() == "lazulite: copied 1,000 rows (100/s), 0 of 2 parts\n"


def test_terminal_has_one_bar_that_is_redrawn() -> None:
    output, timer = Terminal(), Timer()
    progress = ProgressLine(output, timer, columns=lambda: 100)
    tally = Progress("compared", rows=0, rows_total=300, parts=1)
    for step in range(3):
        timer.now = step * DRAW_SECONDS
        tally.rows = step * 100
        progress.show(tally)
    progress.clear()
    assert output.getvalue().split("\r\x1b[K") == [
        "",
        "[##########--------------------] compared 100 of 300 rows (1,000/s), 0 of 1 parts",
        "[####################----------] compared 200 of 300 rows (1,000/s), 0 of 1 parts",
        "",
    ]


def test_each_pass_has_its_own_rate() -> None:
    output, timer = io.StringIO(), Timer()
    progress = ProgressLine(output, timer)
    progress.show(Progress("copied", rows=10**6))
    timer.now = 100.0
    tally = Progress("compared", rows=0)
    progress.show(tally)
    timer.now = 110.0
    tally.rows = 50
    progress.show(tally)
    assert output.getvalue().splitlines()[-1] == "lazulite: compared 50 rows (5/s), 0 of 0 parts"


def test_the_bar_counts_parts_while_the_number_of_rows_is_unknown() -> None:
    assert bar(Progress("copied", 10, None, 4, 1)).count("#") == 7
    assert bar(Progress("copied", 10, 40, 4, 4)).count("#") == 7
    assert bar(Progress("compared", 50, 40)).count("#") == 30, "more than expected"
    assert bar(Progress("compared", 0, 0)).count("#") == 0
    assert Progress("compared", 1000, 2000, 3, 1).describe(1234.5) == (
        "compared 1,000 of 2,000 rows (1,234/s), 1 of 3 parts"
    )


def test_bytes_have_a_bar_once_their_number_is_known() -> None:
    output, timer = Terminal(), Timer()
    line = ProgressLine(output, timer)
    for tally in (BytesDone("stored"), BytesDone("copied", total=10 << 20)):
        line.show(tally)
        timer.now += 1
        tally.done = 5 << 20
        line.show(tally)
    assert output.getvalue().split("\r\x1b[K")[1:] == [
        "stored 5.0 MiB (5.0 MiB/s)",
        "[###############---------------] copied 5.0 MiB of 10.0 MiB (5.0 MiB/s)",
    ]


def test_a_line_is_never_wider_than_its_terminal() -> None:
    half, unknown = BytesDone("copied", total=10, done=5), BytesDone("copied")
    assert fitted(half, "x" * 20, 80) == f"[{'#' * 15}{'-' * 15}] {'x' * 20}"
    assert fitted(half, "x" * 65, 80) == f"[{'#' * 5}{'-' * 5}] {'x' * 65}"
    assert fitted(half, "x" * 66, 80) == "x" * 66
    assert fitted(half, "x" * 78, 80) == "x" * 78
    assert fitted(half, "x" * 79, 80) == f"{'x' * 77}…"
    assert fitted(unknown, "x" * 20, 80) == "x" * 20
    assert all(len(fitted(each, "x" * 40, columns)) < columns for each in (half, unknown) for columns in range(3, 80))


def test_steps_are_shown_as_they_begin() -> None:
    output = io.StringIO()
    line, tally = ProgressLine(output, Timer()), StepsDone("upgrading", total=2)
    for tally.done in range(2):
        line.show(tally, at_once=True)
    assert output.getvalue() == "lazulite: upgrading: step 1 of 2\nlazulite: upgrading: step 2 of 2\n"


def test_rows_whose_number_is_unknown_have_no_bar() -> None:
    assert bar(RowsRead(7)) == ""
    assert RowsRead(1234).describe(10) == "1,234 rows read (10/s)"


def test_the_time_that_is_left_follows_from_the_rate_until_now() -> None:
    output, timer = io.StringIO(), Timer()
    line, tally = ProgressLine(output, timer), BytesDone("copied", total=100 << 20, done=20 << 20)
    line.show(tally)
    timer.now, tally.done = 10.0, 40 << 20
    line.show(tally)
    assert output.getvalue() == "lazulite: copied 40.0 MiB of 100.0 MiB (2.0 MiB/s), 0:30 left\n"
    assert duration_text(3 * 3600 + 61) == "3:01:01"


def test_machines_read_an_object_in_each_line() -> None:
    output, timer = Terminal(), Timer()
    line, tally = ProgressLine(output, timer, json=True), BytesDone("copied", total=100)
    line.show(tally)
    timer.now, tally.done = 10.0, 50
    line.show(tally)
    line.write_note("a\nb")
    line.clear()
    assert [json.loads(each) for each in output.getvalue().splitlines()] == [
        {
            "event": "progress",
            "verb": "copied",
            "bytes": 50,
            "bytes_total": 100,
            "per_second": 5.0,
            "seconds": 10.0,
            "seconds_left": 10.0,
        },
        {"event": "note", "text": "a\nb"},
    ]


def test_what_is_not_known_is_null_for_machines() -> None:
    output = io.StringIO()
    for tally in (RowsRead(), StepsDone("upgrading", 3), Progress("copied", parts=2), BytesDone("read")):
        ProgressLine(output, Timer(), json=True).show(tally, at_once=True)
    found = [json.loads(each) for each in output.getvalue().splitlines()]
    assert [each["seconds_left"] for each in found] == [None] * 4
    assert (found[2]["rows_total"], found[2]["parts_total"], found[3]["bytes_total"]) == (None, 2, None)
