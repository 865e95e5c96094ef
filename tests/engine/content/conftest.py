"""Where the stores of contents are."""

from pathlib import Path

import pytest


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "content"
