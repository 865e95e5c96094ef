"""Every page in a browser: both colours, narrow, without scripts; and accessibility. For `make browser`.

The pages are those of the table of routes, so that a new page is looked at, too.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import JOURNEY
from tests.ui.browser.browsers import AXE, NARROW, WIDE, Scheme, overflows, window
from tests.ui.browser.data import ACCOUNT, Explored, pages

pytestmark = pytest.mark.journey
assert JOURNEY == "journey"

PAGES = pages()
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
INSTALL_SECONDS_MAX = 300


@pytest.fixture(scope="module")
def axe() -> str:
    """The script that checks accessibility, as the lock file has it."""
    if not AXE.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed: accessibility is not checked")
        command = [npm, "ci", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(command, cwd=Path(__file__).parent, check=True, timeout=INSTALL_SECONDS_MAX)
    return AXE.read_text(encoding="utf-8")


def go(page: Page, explored: Explored, path: str) -> None:
    """Sign in, and go to a page."""
    page.goto(explored.link)
    origin = "/".join(page.url.split("/")[:3])
    response = page.goto(origin + path)
    assert response is not None
    assert response.status == 200, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, explored: Explored, axe: str, scheme: Scheme) -> None:
    found = {}
    for width in (WIDE, NARROW):
        with window(browser, scheme=scheme, width=width, bypass_csp=True) as page:
            go(page, explored, "/")
            origin = "/".join(page.url.split("/")[:3])
            for name, path in PAGES.items():
                page.goto(origin + path)
                page.evaluate(axe)
                result = page.evaluate("tags => axe.run(document, {runOnly: tags})", _TAGS)
                for each in result["violations"]:
                    found[f"{name} {width} {each['id']}"] = [node["html"][:200] for node in each["nodes"]][:3]
    assert found == {}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_narrow_window(browser: Browser, explored: Explored, name: str) -> None:
    with window(browser, width=NARROW) as page:
        go(page, explored, PAGES[name])
        assert not overflows(page)
        page.evaluate("document.documentElement.style.fontSize = '28px'")  # As at 200 %.
        expect(page.get_by_role("heading", level=1)).to_be_visible()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_read_without_scripts(browser: Browser, explored: Explored, name: str) -> None:
    with window(browser, scripts=False) as page:
        go(page, explored, PAGES[name])
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


def test_pages_of_an_account_without_data_say_what_would_be_there(browser: Browser, explored: Explored) -> None:
    with window(browser) as page:
        page.goto(explored.link)
        page.goto(f"{page.url}empty/heat")
        expect(page.locator(".empty")).to_contain_text("Account empty has no table yet.")


def test_another_site_cannot_show_a_page_in_a_frame(browser: Browser, explored: Explored) -> None:
    with window(browser, expected=("frame", "Framing", "ancestor", "refused")) as page:
        page.goto(explored.link)
        page.set_content(f'<iframe src="{page.url}"></iframe>')
        page.wait_for_timeout(200)
        assert all("Overview" not in frame.content() for frame in page.frames if frame is not page.main_frame)


def test_a_file_is_looked_at_and_then_imported(browser: Browser, explored: Explored, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("PartitionKey,RowKey,Age,Name\np,1,30,<script>alert(1)</script>\np,2\n", encoding="ascii")
    with window(browser) as page:
        go(page, explored, f"/{ACCOUNT}/tables/People/import")
        button = page.get_by_role("button", name="Import")
        expect(button).to_be_disabled()
        page.get_by_label("File").set_input_files(file)
        expect(page.get_by_text("1 of them would be reported")).to_be_visible()
        expect(page.get_by_role("columnheader", name="Age Int32")).to_be_visible()
        page.get_by_label("Blank RowKeys").select_option("number")
        expect(page.get_by_text("get their number in the file.")).to_be_visible()
        button.click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download People.errors.jsonl").click()
        assert "the row has 2 cells" in Path(download.value.path()).read_text(encoding="utf-8")
        page.get_by_role("link", name="Open the result").click()
        expect(page.get_by_role("cell", name="<script>alert(1)</script>")).to_be_visible()
