from collections.abc import Sequence
from typing import NamedTuple

from lazulite.protocol.message import Request, RequestRecord
from lazulite.protocol.template import PLAIN_START, Answer, CutHead, HeadValues, Miss, PendingAnswer, StartPattern
from lazulite.server.http.templates import LAYOUTS_MAX, LENGTHS_MAX, TemplateCache


class Fixed(NamedTuple):
    """A template."""

    text: str
    method: str = "GET"
    record: RequestRecord = RequestRecord()
    waits: bool = False
    marked: Request = Request("GET", "/")
    names: Sequence[str] = ()

    def begin(self, values: HeadValues, body: bytes, later: PendingAnswer | None) -> Answer:
        return Answer(200, "")

    def missing_bytes(self, values: HeadValues, body: bytes) -> int:
        return 0

    def head_of(self, answer: Answer, values: HeadValues, request_id: str) -> bytes:
        return self.text.encode()


class Source(NamedTuple):
    """Makes templates of one text."""

    text: str = ""
    patterns: Sequence[StartPattern] = (PLAIN_START,)
    varying: frozenset[str] = frozenset()

    def template(self, head: CutHead, request: Request) -> Fixed | None:
        return Fixed(self.text) if self.text else None


def head(path: str = "a", host: str = "h", date: str = "now") -> bytes:
    return f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nDate: {date}\r\n\r\n".encode()


def learn(cache: TemplateCache, data: bytes, text: str = "x", missed: Miss = Miss.UNKNOWN) -> None:
    cache.learn(data, Request("GET", "/", repeat=Source(text)), missed)


def texts(cache: TemplateCache, *heads: bytes) -> list[str | None]:
    found = [cache.find("http", data) for data in heads]
    return [None if each is None else each[0].head_of(Answer(200, ""), (), "").decode() for each in found]


def test_a_head_is_found_by_its_constants() -> None:
    cache = TemplateCache()
    learn(cache, head())
    assert texts(cache, head(), head(date="new"), head(host="g"), head("b"), head(date="later")) == ["x", "x"] + 3 * [
        None
    ]
    assert cache.find("https", head()) is None
    found = cache.find("http", head(date="new") + b"body")
    assert found is not None
    assert found[1:] == ((b"new",), b"body")


def test_heads_of_one_length_have_templates_beside_each_other() -> None:
    cache, hosts = TemplateCache(), [f"h{number}" for number in range(100, 200)]
    for host in hosts:
        learn(cache, head(host=host), host)
    assert texts(cache, *(head(host=host) for host in hosts)) == hosts


def test_values_of_another_length_are_another_layout_of_one_template() -> None:
    cache = TemplateCache()
    dates = ["x" * (number + 1) for number in range(20)]
    for date in dates:
        learn(cache, head(date=date))
    assert texts(cache, *(head(date=date) for date in dates)) == ["x"] * 20
    assert (len(cache), cache.learned) == (1, 1)


def test_the_newest_layouts_of_a_length_are_kept() -> None:
    cache = TemplateCache()
    hosts = ["h" * (number + 1) for number in range(LAYOUTS_MAX + 2)]
    for host in hosts:
        learn(cache, head(host=host, date="x" * (20 - len(host))))
    found = texts(cache, *(head(host=host, date="y" * (20 - len(host))) for host in hosts))
    assert found == [None, None] + ["x"] * LAYOUTS_MAX
    for number in range(4 * LENGTHS_MAX):
        learn(cache, head(host="h" * number))
    assert len(cache._layouts) <= LENGTHS_MAX


def test_templates_have_a_bound_of_number_and_those_in_use_stay() -> None:
    cache = TemplateCache(templates_max=20)
    learn(cache, head("used"))
    for number in range(100):
        learn(cache, head(f"p{number}"))
        assert texts(cache, head("used")) == ["x"]
        assert len(cache) <= 20
    assert texts(cache, head("p0"), head("p99")) == [None, "x"]


def test_templates_have_a_bound_of_bytes() -> None:
    cache = TemplateCache(bytes_max=60_000)
    for number in range(100):
        learn(cache, head(host=f"h{number:02d}" + "x" * 1000))
    assert 2 <= len(cache) <= 60_000 // 5000


def test_a_template_is_replaced_if_its_credentials_are_not_good() -> None:
    cache = TemplateCache()
    learn(cache, head(), "old")
    for missed in (Miss.UNKNOWN, Miss.BUSY, Miss.OPERATION):
        learn(cache, head(), missed.value, missed)
        assert texts(cache, head()) == ["old"]
    learn(cache, head(), "new", Miss.CREDENTIALS)
    assert texts(cache, head()) == ["new"]


def test_what_can_have_no_template_has_none() -> None:
    cache = TemplateCache()
    learn(cache, head(), "")
    cache.learn(head(), Request("GET", "/"), Miss.UNKNOWN)
    learn(cache, b"GET * HTTP/1.1\r\n\r\n")
    learn(cache, head(), missed=Miss.RULES)
    assert len(cache) == cache.learned == 0


def test_outcomes_are_counted() -> None:
    cache = TemplateCache()
    cache.hits += 2
    cache.miss(Miss.RULES)
    assert {name: count for name, count in cache.outcomes.items() if count} == {"hit": 2, "rules": 1}
