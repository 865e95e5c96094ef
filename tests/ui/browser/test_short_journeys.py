"""Three short journeys in a browser, for each run of CI; the others are in test_journeys.py."""

from playwright.sync_api import Browser, expect

from lazulite.settings.config import account_file
from tests.ui.browser.browsers import window
from tests.ui.browser.data import ACCOUNT, Explored


def test_a_link_signs_in_once_and_leaves_the_address(browser: Browser, explored: Explored) -> None:
    link = explored.link
    with window(browser, expected=("403", "401")) as page:
        page.goto(link)
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        assert "token" not in page.url
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("link", name="Sessions").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Lazulite explorer")).to_be_visible()
        page.get_by_label("Token").fill("0" * 64)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("This token is wrong, or was used before.")
        page.get_by_label("Token").fill(explored.link.partition("token=")[2])
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_a_key_is_replaced_by_the_keyboard_alone(browser: Browser, explored: Explored) -> None:
    accounts = account_file(explored.location)
    with window(browser) as page:
        page.goto(explored.link)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.goto(f"{page.url}accounts")
        page.get_by_label("Name").focus()
        page.keyboard.type("orders")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Account orders is there.")
        before = accounts.load()["orders"].keys
        page.goto("/".join([*page.url.split("/")[:3], "orders", "account"]))
        button = page.get_by_role("button", name="Replace key 2")
        expect(button).to_be_disabled()
        page.get_by_label("to replace key 2").focus()
        page.keyboard.type("orders")
        expect(button).to_be_enabled()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Key 2 is new")
    after = accounts.load()["orders"].keys
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)


def test_a_heat_map_is_read_by_arrow_keys(browser: Browser, explored: Explored) -> None:
    with window(browser) as page:
        page.goto(explored.link)
        page.goto(f"{page.url}{ACCOUNT}/heat?name=Orders&last=600")
        picture = page.get_by_role("img", name="Writes by key range")
        picture.focus()
        line = page.locator("#cell-1")
        expect(line).to_contain_text("arrow keys")
        page.keyboard.press("ArrowRight")
        expect(line).to_contain_text("UTC:")
        first = line.text_content()
        page.keyboard.press("ArrowRight")  # The number of ranges depends on the rate.
        expect(line).not_to_have_text(str(first))
