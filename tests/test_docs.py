"""The examples of the documentation run. Its facts: test_docs_facts.py. Its links: test_docs_links.py."""

import code
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from types import CodeType

import pytest
from azure.data.tables import TableClient

import lazulite.testing

from .conformance.client import Client
from .conformance.signing import Endpoint
from .conformance.tables import new_table
from .docs_support import PAGES, PATTERNS, ROOT, RUN, Checkout, Fence, Reader, fences, page_text, prints
from .markdown import without_fences

RUN_PAGES = [page for page in PAGES if any(fence.language in RUN for fence in fences(page))]
SKIPPED = {
    ("README.md", "it needs a Docker engine"),
    ("README.md", "it needs a Docker engine"),
    ("docs/operations/install.md", "it needs root and systemd"),
    ("docs/operations/backup.md", "it needs a PostgreSQL server"),
    ("docs/operations/database.md", "it needs a PostgreSQL server"),
    ("docs/operations/upgrade.md", "it needs a PostgreSQL server"),
    ("docs/operations/clock.md", "it needs two services"),  # cli/test_serve_clock.py has them.
}
CLIENTS = {"csharp", "javascript", "java", "go"}
NOT_RUN = {"output", "text", "ini"}
NOT_WRAPPED = {"docs/compatibility.md"}
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
    found = {"README.md", "docs/tutorial.md", "docs/operations/backup.md", "docs/queries.md", "examples/README.md"}
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
        steps = [planned.find(step) for step in ("-m venv --clear .venv", "pip install", command)]
        assert -1 not in steps
        assert steps == sorted(steps), planned


def test_the_backup_that_is_described_holds_what_was_written(checkout: Checkout) -> None:
    shells = [fence.text for fence in fences("docs/operations/backup.md") if fence.language == "sh"]
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


class Interpreter(code.InteractiveConsole):
    """Compiles pasted lines as the interactive interpreter does, without running them."""

    def __init__(self) -> None:
        super().__init__()
        self.errors = 0

    def runcode(self, code: CodeType) -> None:
        """Run nothing."""

    def showsyntaxerror(self, filename: str | None = None) -> None:
        """Count the error."""
        self.errors += 1


def pasting_errors(text: str) -> int:
    """Return how many errors the interactive interpreter reports for a text, which is followed by an empty line."""
    interpreter = Interpreter()
    for line in [*text.splitlines(), ""]:
        interpreter.push(line)
    return interpreter.errors


PASTED = [page for page in PAGES if "paste" in page_text(page)]


@pytest.mark.parametrize("page", PASTED)
def test_a_page_can_be_pasted_into_the_interpreter(page: str) -> None:
    found = [fence.text for fence in fences(page) if fence.language == "python"]
    assert found
    assert [text for text in found if pasting_errors(text)] == []


def test_pages_to_paste_are_found_and_so_are_their_errors() -> None:
    assert {"docs/tutorial.md", "docs/queues.md", "docs/blobs.md"} <= {*PASTED}
    assert pasting_errors("for x in y:\n    x()\nx()\n") == 1, "a statement after a block needs an empty line"


def test_the_first_test_of_the_contributing_page_passes() -> None:
    names: dict[str, object] = {}
    exec(next(fence.text for fence in fences("CONTRIBUTING.md") if fence.language == "python"), names)
    (first,) = (value for name, value in names.items() if name.startswith("test_"))
    assert callable(first)
    with lazulite.testing.server() as storage:
        account = storage.account()
        client = Client(Endpoint.parse(account.endpoint, account.name, account.key))
        with contextmanager(new_table)(client) as table:
            first(table)
        client.close()


# Lines.


@pytest.mark.parametrize("page", [page for page in PAGES + PATTERNS if page not in NOT_WRAPPED])
def test_lines_of_prose_wrap_at_100(page: str) -> None:
    prose = without_fences(page_text(page)).splitlines()
    long = [line for line in prose if len(line) > LINE_MAX and not line.startswith(("|", "#"))]
    assert long == []


# Clients in other languages.


def client_fences() -> list[Fence]:
    return [fence for fence in fences("docs/clients.md") if fence.language in CLIENTS]


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
