"""One browser for each file, and one server with some data."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.ui.browser.browsers import require_chromium, running_browser
from tests.ui.browser.data import Explored, explored_server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser of the file."""
    require_chromium()
    with running_browser() as found:
        yield found


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    """A server with some data, and its explorer."""
    require_chromium()
    with explored_server(tmp_path_factory.mktemp("location")) as found:
        yield found
