"""The text and the page of an advice: complete, and safe to hand on."""

import json
import re
from html.parser import HTMLParser

from lazulite.advise.report import page, report, text_lines

from .workloads import advised


class Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_loads_nothing_and_has_no_script() -> None:
    found = page(report(advised("component_logs")))
    tags = Tags()
    tags.feed(found)
    assert tags.open == []
    assert not tags.found & {"script", "link", "img", "iframe", "object", "a", "form"}
    assert not any(name.startswith("on") or name in ("src", "href") for name in tags.attributes)
    assert re.search(r"url\(|@import|https?:", found) is None
    assert "default-src 'none'" in found


def test_a_page_escapes_names() -> None:
    found = page(report(advised("no_answer", ("all payments in order", "<script>alert(1)</script>"))))
    assert "<script>" not in found
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in found
    assert "There is no good answer" in found


def test_a_page_has_each_part() -> None:
    found = report(advised("employees", ("rows = 50_000", 'rows = 50_000\ntoday = {partition = ["Id"], row = []}')))
    text = page(found)
    assert text.count('<section class="card">') == 5, "four candidates and today's keys"
    for title in (
        "Answer",
        "The nine steps",
        "Stress test",
        "Today&#39;s keys",
        "What to avoid",
        "What an index",
        "Words",
    ):
        assert title.replace("&#39;", "'") in text or title in text, title
    assert json.loads(json.dumps(found)) == found


def test_indexes_say_what_they_save_and_what_azure_has_instead() -> None:
    found = report(advised("employees", ("rows = 50_000", 'rows = 50_000\ntoday = {partition = ["Id"], row = []}')))
    lines = "\n".join(text_lines(found))
    assert "'an employee by mail' reads 1 row" in lines
    assert "instead of 50,000 rows: lazulite index create employees by_mail_department" in lines
    assert "--on Mail --on Department --scope table" in lines
    assert "index() of lazulite-patterns" in lines


def test_the_text_says_what_candidates_trade() -> None:
    lines = "\n".join(text_lines(report(advised("employees"))))
    assert "Against candidate 1: 'an employee by mail' is a partition range of 1,250 rows" in lines
    assert "Each entity has 2 RowKeys in its partition, written in one transaction" in lines
    assert "partition: all entities with one PartitionKey." in lines
