"""The pictures of docs/explorer.md: `make screenshots`. They are small: few colours, one size."""

import argparse
import tempfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from PIL import Image

from tests.ui.browser.browsers import WIDE, running_browser, window
from tests.ui.browser.data import explored_server, pages

DOCS = Path(__file__).parents[3] / "docs" / "explorer"
PICTURES: Mapping[str, str] = {"overview": "light", "heat": "light", "account": "dark"}
"""Page -> the colours of its picture."""
COLOURS = 48


def main() -> None:
    """Write the pictures of all pages that have one, or of the named pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", default=[*PICTURES], help="pages, by their templates")
    parser.add_argument("--folder", type=Path, default=DOCS, help="where they are written")
    parser.add_argument("--width", type=int, default=WIDE, help="pixels of the window")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    paths = pages()
    with (
        tempfile.TemporaryDirectory() as folder,
        explored_server(Path(folder)) as explored,
        running_browser() as browser,
    ):
        for name in asked.pages:
            scheme = "dark" if PICTURES.get(name) == "dark" else "light"
            with window(browser, scheme="dark" if scheme == "dark" else "light", width=asked.width) as page:
                page.goto(explored.link)
                page.goto(page.url.rstrip("/") + paths[name])
                page.evaluate("document.querySelector('.place').textContent = 'data'")
                image = Image.open(BytesIO(page.screenshot())).convert("RGB")
            image.quantize(COLOURS).save(asked.folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
