"""The page of behaviours is true: its tests exist and passed, and it says what its tables say.

The last of these runs after all other tests of its process, for it looks at what became of those. Of tests that run in
another process of pytest-xdist it checks that they were collected.
"""

import os
from pathlib import Path

import pytest

from .compatibility import (
    OUTCOMES,
    PAGE,
    Behaviour,
    Section,
    case_name,
    existing_tests,
    is_ours,
    page,
    read_sections,
    unshown,
    whole_list,
)


def section(*tests: str) -> list[Section]:
    return [Section("§17", "Nothing", (Behaviour("row", "Does | something.", "same", "", tests),))]


def test_a_test_that_did_not_pass_shows_nothing() -> None:
    outcomes = {"test_a::test_x[1]": True, "test_a::test_x[2]": False, "test_a::test_y": True}
    assert unshown(section("test_a::test_y", "test_a::test_x[1]"), outcomes) == []
    assert unshown(section("test_a::test_x", "test_a::test_x[2]"), outcomes) == ["test_a::test_x", "test_a::test_x[2]"]
    assert unshown(section("test_a::test_x[3]"), outcomes) == ["test_a::test_x[3]"]
    assert unshown(section("test_b::test_z"), outcomes) == []
    assert unshown(section("server/test_c::test_z"), {"server/test_c::test_z": False}) != []


def test_a_row_needs_a_reason_and_a_test(tmp_path: Path) -> None:
    head = 'reference = "§17"\ntitle = "T"\n[row]\n'
    for text, fine in [
        ('does = "x"\nshown_by = ["test_a::test_b"]', True),
        ('does = "x"\nshown_by = ["test_a::test_b"]\ndiffers = "why"', True),
        ('does = "x"\ndiffers = "absent"', True),
        ('does = "x"\ndiffers = "why"', False),
        ('does = "x"', False),
        ('shown_by = ["test_a::test_b"]', False),
        ('does = "x"\nshown_by = ["test_a::test_b"]\nunverified = ""', False),
        ('does = "x"\nshown_by = ["test_a::test_b"]\nunverified = "a"\ndiffers = "b"', False),
        ('does = "x"\nshown_by = ["test_a::test_b"]\nbetter = "why"', False),
    ]:
        (tmp_path / "00-nothing.toml").write_text(head + text, encoding="utf-8")
        if fine:
            assert len(read_sections(tmp_path)[0].behaviours) == 1
        else:
            with pytest.raises(ValueError, match="row"):
                read_sections(tmp_path)


def test_a_page_counts_all_rows_and_lists_the_different_ones() -> None:
    same = Behaviour("alike", "Does.", "same", "", ("test_a::test_x",))
    other = Behaviour("other", "Does | something.", "differs", "it does not", ("test_a::test_y",))
    text = page([Section("§17", "Nothing", (same, other))])
    link = "[§17](protocol/errors.md#17-throttling)"
    assert f"| {link} Nothing | 1 | 1 | 0 | 2 |\n| **All** | 1 | 1 | 0 | 2 |" in text
    assert f"| {link} | Does \\| something. | it does not |\n" in text
    assert "| Does. |" not in text


def test_the_whole_list_has_a_line_for_each_row_with_its_tests() -> None:
    text = whole_list(section("test_a::test_x_y", "test_a::test_z[PUT-*]"))
    assert "\n## §17 Nothing\n\nReference: [§17](../docs/protocol/errors.md#17-throttling).\n" in text
    links = r"[x y](../tests/conformance/test_a.py), [z: PUT-\*](../tests/conformance/test_a.py)"
    assert f"| `row` | Does \\| something. | same | {links} |\n" in text


def test_names_of_cases() -> None:
    assert case_name("tests/conformance/test_a.py::test_b[c/d.py::e]") == "test_a::test_b[c/d.py::e]"
    assert case_name("tests/conformance/queue/test_a.py::test_b") == "conformance/queue/test_a::test_b"
    assert case_name("tests/queue/test_a.py::test_b") == "queue/test_a::test_b"
    assert case_name("tests/table/filter/test_a.py::test_b") == "table/filter/test_a::test_b"
    assert case_name("tests/test_a.py::test_b") is None


def test_every_test_that_is_named_exists() -> None:
    named = {test.partition("[")[0] for each in read_sections() for row in each.behaviours for test in row.shown_by}
    assert named - existing_tests() == set()


def test_every_test_of_the_suite_shows_something() -> None:
    named = {test.partition("[")[0] for each in read_sections() for row in each.behaviours for test in row.shown_by}
    about_the_suite = ("test_compatibility::", "test_vectors::", "test_batch_parser::")
    assert {
        test for test in existing_tests() - named if is_ours(test) and not test.startswith(about_the_suite)
    } == set()


@pytest.mark.skipif("LAZULITE_TEST_ENDPOINT" in os.environ, reason="the page tells of Lazulite")
def test_the_page(request: pytest.FixtureRequest) -> None:
    sections = read_sections()
    collected = {name for item in request.session.items if (name := case_name(item.nodeid))}
    assert unshown(sections, dict.fromkeys(collected, True)) == [], "no such cases"
    assert unshown(sections, request.config.stash[OUTCOMES]) == []
    assert PAGE.read_text(encoding="utf-8") == page(sections), "stale: run `make pages`"
    assert whole_list(sections).count("\n| `") == sum(len(each.behaviours) for each in sections)
