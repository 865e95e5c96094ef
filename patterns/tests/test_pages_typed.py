"""`mypy --strict` accepts the programs of the pages, without a plugin."""

from pathlib import Path

import pytest

from .test_docs import PAGES, fences

api = pytest.importorskip("mypy.api", reason="mypy checks the pages")


def test_the_programs_of_the_pages_are_typed(tmp_path: Path) -> None:
    """Give mypy the blocks of a page as one program; a further block with a `main` is a program by itself."""
    for page in PAGES:
        texts = [text for language, text in fences(page) if language == "python"]
        whole = [text for text in texts if "__main__" in text]
        parts = "\n".join(text for text in texts if text not in whole[1:])
        for number, text in enumerate([parts, *whole[1:]]):
            (tmp_path / f"{Path(page).stem.lower()}_{number}.py").write_text(text, encoding="utf-8")
    found, errors, status = api.run(
        ["--config-file=", "--strict", "--no-incremental", *map(str, sorted(tmp_path.iterdir()))]
    )
    assert (status, errors) == (0, ""), found
