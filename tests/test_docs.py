"""The documentation is true: its examples run, and its links lead somewhere. What it lists: test_docs_facts.py."""

import re
import shutil
from pathlib import Path

import pytest
from azure.data.tables import TableClient

from .docs_support import PAGES, REPORTS, ROOT, RUN, Checkout, Fence, Reader, fences, page_text, prints
from .markdown import links, without_fences

RUN_PAGES = [page for page in PAGES if any(fence.language in RUN for fence in fences(page))]
SKIPPED = {
    ("docs/operations.md", "it needs root and systemd"),
    ("docs/operations.md", "it needs a PostgreSQL server"),
    ("docs/operations.md", "it needs two services"),  # cli/test_serve_clock.py has them.
}
CLIENTS = {"csharp", "javascript", "java", "go"}
NOT_RUN = {"output", "text", "ini"}
NOT_WRAPPED = {"docs/compatibility.md", "benchmarks/README.md"}
LINE_MAX = 100
NODE_MODULES = ROOT / "tests" / "sdk" / "javascript" / "node_modules"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


# The examples.


@pytest.mark.parametrize("page", RUN_PAGES)
def test_a_page_does_what_it_says(page: str, checkout: Checkout) -> None:
    Reader(checkout).read(page)


def test_the_pages_with_examples_are_found() -> None:
    found = {"README.md", "docs/tutorial.md", "docs/operations.md", "docs/queries.md", "examples/README.md"}
    assert found | {"benchmarks/README.md"} <= set(RUN_PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_is_of_a_known_kind(page: str) -> None:
    found = fences(page)
    assert {fence.language for fence in found} <= RUN | CLIENTS | NOT_RUN
    assert page_text(page).count("```") == 2 * len(found), "a fence that the tests do not see"
    assert page_text(page).count("<!-- test:") == sum(bool(fence.marker) for fence in found), "a marker without effect"


def test_only_these_examples_are_not_run() -> None:
    skipped = {(page, fence.reason) for page in PAGES for fence in fences(page) if fence.marker == "skip"}
    assert skipped == SKIPPED


def test_a_marker_needs_a_reason(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- test: skip -->\n```sh\nfalse\n```\n", encoding="utf-8")
    assert fences(str(page))[0].marker == ""


def test_an_example_that_fails_fails_its_page(checkout: Checkout, tmp_path: Path) -> None:
    for number, text in enumerate(
        (
            "```sh\nfalse\n```\n",
            "```\nmake serve ARGS=--bogus\n```\n",
            "```python\nassert False\n```\n",
            "```python\nprint(1)\n```\n\n```output\n2\n```\n",
        )
    ):
        page = tmp_path / f"{number}.md"
        page.write_text(text, encoding="utf-8")
        with pytest.raises(AssertionError):
            Reader(checkout).read(str(page))


def test_an_ellipsis_stays_within_its_line() -> None:
    assert prints("a 1 b\nc\n", "a … b\nc\n")
    assert not prints("a 1\nb\n", "a …\n")
    assert not prints("a.b", "a…c")


def test_make_serve_and_make_test_set_up_everything(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    shutil.rmtree(tmp_path / ".venv")
    for target, command in (("serve", ".venv/bin/lazulite serve"), ("test", "-m pytest")):
        planned = checkout.run(["make", "-n", target])
        steps = [planned.find(step) for step in ("-m venv .venv", "pip install", command)]
        assert -1 not in steps
        assert steps == sorted(steps), planned


def test_the_backup_that_is_described_holds_what_was_written(checkout: Checkout) -> None:
    shells = [fence.text for fence in fences("docs/operations.md") if fence.language == "sh"]
    copy, restore, serve = (
        next(text for text in shells if text.startswith(f".venv/bin/lazulite {command}"))
        for command in ("backup", "restore", "serve --location restored")
    )
    reader = Reader(checkout)
    account = checkout.environment()["LAZULITE_CONNECTION_STRING"]
    try:
        reader.serve("make serve")
        with TableClient.from_connection_string(account, "Kept", retry_total=0) as table:
            table.create_table()
            table.create_entity({"PartitionKey": "p", "RowKey": "r", "Value": 1})
            checkout.run(["bash", "-c", copy])
            reader.close()
            shutil.rmtree(checkout.directory / "data")
            checkout.run(["bash", "-c", restore])
            reader.serve(serve.strip())
            assert table.get_entity("p", "r")["Value"] == 1
    finally:
        reader.close()


# Lines.


@pytest.mark.parametrize("page", [page for page in PAGES + REPORTS if page not in NOT_WRAPPED])
def test_lines_of_prose_wrap_at_100(page: str) -> None:
    prose = without_fences(page_text(page)).splitlines()
    long = [line for line in prose if len(line) > LINE_MAX and not line.startswith(("|", "#"))]
    assert long == []


# Clients in other languages.


def client_fences() -> list[Fence]:
    return [fence for fence in fences("README.md") if fence.language in CLIENTS]


def test_there_is_an_example_for_each_client() -> None:
    assert [fence.language for fence in client_fences()] == ["csharp", "javascript", "java", "go"]


@pytest.mark.parametrize("fence", client_fences(), ids=lambda fence: fence.language)
def test_a_client_is_given_the_development_connection_string(fence: Fence) -> None:
    literals = re.findall(r'"([^"]*)"', re.sub(r"`[^`]*`", "", fence.text))
    joined = "".join(literals)
    python = next(fence for fence in fences("README.md") if fence.language == "python")
    expected = "".join(re.findall(r'"(\w+=[^"]*;)"', python.text))
    assert expected.startswith("DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=")
    assert expected in joined


def test_the_javascript_client_runs(checkout: Checkout) -> None:
    if shutil.which("node") is None or not NODE_MODULES.exists():
        pytest.skip("node or the JavaScript SDK is not installed")
    fence = next(fence for fence in client_fences() if fence.language == "javascript")
    (checkout.directory / "node_modules").symlink_to(NODE_MODULES)
    (checkout.directory / "orders.mjs").write_text(checkout.here(fence.text), encoding="utf-8")
    reader = Reader(checkout)
    try:
        reader.serve("make serve")
        assert checkout.run(["node", "orders.mjs"]) == "12.5\n"
    finally:
        reader.close()


# Links.


@pytest.mark.parametrize("page", PAGES + REPORTS)
def test_links_lead_somewhere(page: str) -> None:
    for link in links(page_text(page)):
        assert link.target.startswith("https://") or link.leads_somewhere(ROOT / page), link


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    for name in re.findall(
        r"`((?:src|tests|docs|examples|benchmarks|app|auth|cli|engine|migration|protocol|records|server|service|settings"
        r"|table|testing)/[\w/]+\.\w+)`",
        page_text(page),
    ):
        assert (ROOT / name).exists() or (ROOT / "src" / "lazulite" / name).exists(), name


def test_every_page_is_linked_from_the_index() -> None:
    indexes = [ROOT / "README.md", ROOT / "docs" / "README.md"]
    linked = {(index.parent / link.target).resolve() for index in indexes for link in links(page_text(str(index)))}
    for page in PAGES + REPORTS:
        assert (ROOT / page).resolve() in {*indexes, *linked}, page
