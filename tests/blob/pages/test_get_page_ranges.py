"""The document of Get Page Ranges."""

import pytest

from lazulite.blob.model.page_ranges import PageRange
from lazulite.blob.pages.get_page_ranges import write_page_list
from lazulite.protocol.steps import finish
from tests.blob.steps import steps_of

START = '<?xml version="1.0" encoding="utf-8"?>'
ONE = [PageRange(0, 512), PageRange(512, 1024, is_cleared=True)]
WRITTEN = (
    "<PageRange><Start>0</Start><End>511</End></PageRange><ClearRange><Start>512</Start><End>1023</End></ClearRange>"
)


@pytest.mark.parametrize(
    ("ranges", "marker", "expected"),
    [
        ([], None, "<PageList />"),
        ([], "", "<PageList><NextMarker /></PageList>"),
        (ONE, None, f"<PageList>{WRITTEN}</PageList>"),
        (ONE, "m", f"<PageList>{WRITTEN}<NextMarker>m</NextMarker></PageList>"),
    ],
)
def test_the_document_to_the_byte(ranges: list[PageRange], marker: str | None, expected: str) -> None:
    assert b"".join(finish(write_page_list(ranges, marker))).decode("utf-8-sig") == START + expected


def test_a_long_list_is_written_in_steps() -> None:
    assert steps_of(write_page_list(ONE * 2_500)) == 10
