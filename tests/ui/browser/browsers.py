"""A real browser, Debian's Chromium, and what a test sees of it.

Invariant: a page that logs an error, breaks the policy of contents, opens a dialog or asks another origin fails its
test when the block ends.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
Scheme = Literal["light", "dark"]
WIDE, NARROW = 1280, 400
SECONDS_MAX = 60
expect.set_options(timeout=SECONDS_MAX * 1000)
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"


def require_chromium() -> None:
    """Skip a test if there is no Chromium."""
    if shutil.which(CHROMIUM) is None:
        pytest.skip("there is no Chromium: apt-get install chromium")


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run one browser inside the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(
    browser: Browser,
    *,
    scheme: Scheme = "light",
    width: int = WIDE,
    scripts: bool = True,
    expected: tuple[str, ...] = (),
    bypass_csp: bool = False,
) -> Iterator[Page]:
    """Yield a page of a new profile, and check at the end of the block that nothing went wrong in it.

    Args:
        browser: runs.
        scheme: the colours that its user prefers.
        width: of the window, in pixels.
        scripts: whether it runs scripts.
        expected: parts of messages on its console that are right, such as `403`.
        bypass_csp: whether a checker may add its own script.
    """
    context: BrowserContext = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
        java_script_enabled=scripts,
        bypass_csp=bypass_csp,
        reduced_motion="reduce",
    )
    context.set_default_timeout(SECONDS_MAX * 1000)
    wrong: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def dismiss(dialog: Dialog) -> None:
        wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("dialog", dismiss)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    try:
        yield page
        assert [text for text in wrong if not any(part in text for part in expected)] == []
        origins = {"/".join(url.split("/")[:3]) for url in asked if not url.startswith(("data:", "blob:"))}
        assert len(origins) <= 1, origins
    finally:
        context.close()


def overflows(page: Page) -> bool:
    """Return whether a page is wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
